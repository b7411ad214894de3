# The gateway in a container: docker build -t contextfold-gateway . && docker run -p 8642:8642 contextfold-gateway
# Options go behind the image's name; the store is a volume, unless CONTEXTFOLD_GATEWAY_STORE names a PostgreSQL.
ARG PYTHON=3.13.9-slim-bookworm
FROM python:${PYTHON} AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
# The build backend comes first, pinned like the rest: an isolated build would fetch its own, unpinned. What it brought is
# not taken for installed, or the next stage would lack it.
RUN pip install --no-cache-dir --only-binary :all: -c constraints.txt hatchling && \
    pip install --no-cache-dir --no-build-isolation --ignore-installed --prefix=/install --only-binary :all: \
    -c constraints.txt ".[gateway,postgres]"

FROM python:${PYTHON}
COPY --from=build /install /usr/local
RUN useradd --create-home --uid 1000 contextfold && mkdir /data && chown contextfold /data
USER contextfold
VOLUME /data
ENV CONTEXTFOLD_GATEWAY_STORE=sqlite:////data/gateway.db
EXPOSE 8642
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8642/healthz', timeout=2)"]
ENTRYPOINT ["contextfold", "gateway", "--host", "0.0.0.0", "--log", "json"]
