"""Results do not depend on the number of threads of the linear algebra."""

import os
import subprocess
import sys

PROGRAM = """
import hashlib
import numpy as np
from ellipack import MetricRegressor

for d in (100, 300):
    X = np.random.default_rng(0).normal(size=(100, d))
    learner = MetricRegressor()
    predictions = learner.progressive(X, X[:, 0] + np.sin(X[:, 1]))
    print(hashlib.sha256(predictions.tobytes() + learner.predict(X).tobytes()).hexdigest())
"""


def test_bits_do_not_depend_on_the_threads_of_blas() -> None:
    printed = []
    for threads in ("1", "2"):
        variables = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
        environment = os.environ | dict.fromkeys(variables, threads)
        command = [sys.executable, "-c", PROGRAM]
        printed.append(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)
    assert len(printed[0].split()) == 2
    assert printed[0] == printed[1]
