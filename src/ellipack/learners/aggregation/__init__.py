"""How the experts' predictions become one."""
