"""One thread a worker: the tests share the cores, and threads that wait for each other cost more."""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ["OMP_NUM_THREADS"] = "1"
