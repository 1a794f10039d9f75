// The Python module: each kind of thing is registered by a file of its own.

#include "bindings.hpp"

NB_MODULE(ELLIPACK_MODULE, m) {
  m.doc() = "Compiled cores: they own their arrays and run rounds; Python decides.";
  nanobind::set_leak_warnings(false);
}
