"""Every timeout and limit of the embedded server and of the `temporal` program, each with its reason."""

from datetime import timedelta

START_WAIT = timedelta(seconds=60)  # 0.3 s on a quiet machine; a cold disk reads 210 MB first
STOP_WAIT = timedelta(seconds=10)  # it drains for 2.5 s after SIGINT; then it is killed
PROBE_TIMEOUT = timedelta(seconds=3)  # a live server on loopback answers in milliseconds
PORT_TRIES = 4  # a port that was free may be taken before the server binds it
VERSION_TIMEOUT = timedelta(seconds=20)  # `temporal --version`: milliseconds, seconds from a cold disk
DOWNLOAD_TIMEOUT = timedelta(seconds=120)  # ~50 MB; offline it fails at once
BUILD_TIMEOUT = timedelta(minutes=30)  # 4 minutes on 2 cores
BUILD_REPORT = timedelta(seconds=5)  # how often a build or a wait for one says that it lives
LOCK_POLL = timedelta(milliseconds=200)  # a file lock does not announce that it is free
POLL = timedelta(milliseconds=50)  # until a new server serves
