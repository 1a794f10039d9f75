import pytest

from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.experts import GLOBAL_EXPERTS, LOCAL_EXPERTS, expert_names
from ellipack.learners.metric.initial_state import LearnerSize, initial_state


@pytest.mark.parametrize("views", [1, 2])
def test_each_expert_of_the_core_has_a_unique_name(views: int) -> None:
    names = expert_names(views)
    core = initial_state(3, LearnerSize(views, 8, 100), 0, MetricConfig()).core
    assert len(set(names)) == len(names) == len(core.parts().plain.aggregation.experts.weights())
    assert len(names) == len(GLOBAL_EXPERTS) + views * len(LOCAL_EXPERTS)
