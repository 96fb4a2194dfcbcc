# Simul in a container, on the CPU:
#   docker build -t simul .
#   docker run --rm -it --init --name run -p 127.0.0.1:8080:8080 -v simul-runs:/home/simul/runs simul up cartpole
# The page, while that container runs; the browser opens the address with localhost as its host, #token=... included:
#   docker exec -it run simul page --host 0.0.0.0 --token
# The page of a run that has ended:
#   docker run --rm -it --init -p 127.0.0.1:8080:8080 -v simul-runs:/home/simul/runs simul page --host 0.0.0.0 --token
# On a GPU: docker build --build-arg TORCH_INDEX= -t simul .    (PyPI's PyTorch for Linux is a CUDA build)
#   docker run --gpus all ...
#
# No image has been built of this file yet. Its steps have been run one by one in fresh folders, on Debian 12 with
# Python 3.11 and the CPU build of torch from a local index, and what they made was used by a user who cannot write it.
# Not run: the base image and its packages, the packages of the page, the index of pytorch.org, the CUDA build, and the
# commands above.

ARG PYTHON=3.11
FROM python:${PYTHON}-slim

# Node 26 needs libatomic; without it the setup falls back to an older, slower Node.
RUN apt-get update \
    && apt-get install -y --no-install-recommends libatomic1 \
    && rm -rf /var/lib/apt/lists/*

ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PATH=/opt/venv/bin:$PATH
WORKDIR /opt/simul

# The packages first: they change less often than the sources.
COPY pyproject.toml constraints.txt ./
RUN python -m venv /opt/venv \
    && pip install -c constraints.txt ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} \
        $(python -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
            print(*project["dependencies"], *project["optional-dependencies"]["page"])')

COPY . .
RUN pip install --no-deps . \
    && simul setup-pokemon

RUN useradd --create-home simul && mkdir /home/simul/runs && chown simul:simul /home/simul/runs
USER simul
WORKDIR /home/simul
VOLUME /home/simul/runs
ENTRYPOINT ["simul"]
CMD ["--help"]
