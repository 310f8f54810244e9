# The worker, its command line and the stand-in model: one image, run from source.
FROM python:3.12.12-slim-bookworm AS build
COPY deploy/uv.txt /tmp/uv.txt
RUN pip install --no-cache-dir --require-hashes -r /tmp/uv.txt
ENV UV_PROJECT_ENVIRONMENT=/opt/venv UV_PYTHON=/usr/local/bin/python3 UV_PYTHON_DOWNLOADS=never \
    UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_NO_CACHE=1
WORKDIR /app
COPY pyproject.toml uv.lock ./
RUN uv sync --locked --no-dev --no-install-project

FROM python:3.12.12-slim-bookworm
# a named volume takes its owner from the folder it is first mounted on
RUN useradd --system --uid 10001 --home-dir /tmp --shell /usr/sbin/nologin supervisor \
    && install -d -o supervisor -g supervisor /data
COPY --from=build /opt/venv /opt/venv
WORKDIR /app
COPY worker_main.py starter.py ./
COPY activities activities
COPY workflows workflows
COPY temporal_supervisor temporal_supervisor
COPY teams teams
COPY docs docs
COPY examples examples
RUN /opt/venv/bin/python -m compileall -q . \
    && printf '#!/bin/sh\nexec /opt/venv/bin/python /app/starter.py "$@"\n' > /opt/venv/bin/temporal-supervisor \
    && chmod 755 /opt/venv/bin/temporal-supervisor
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    SUPERVISOR_ARTIFACTS_URL=/data/artifacts SUPERVISOR_CACHE_DIR=/tmp/supervisor
USER supervisor
VOLUME /data
CMD ["python", "worker_main.py"]
