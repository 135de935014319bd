"""One thread a worker: the tests share the cores, and waiting threads cost more than they give."""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ["OMP_NUM_THREADS"] = "1"
