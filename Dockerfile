# The image holds one static binary, which carries the compiler of programs, CA certificates, and its documentation with the licences of what it is built of; it runs as nobody.
#
#   docker build -t recurgentd .
#   printf 'me %s\n' "$(openssl rand -hex 24)" >tokens
#   docker run --rm -p 127.0.0.1:8420:8420 -v recurgent:/data -v $PWD/tokens:/run/tokens:ro \
#     -e RECURGENT_AUTH_TOKENS_FILE=/run/tokens recurgentd
#
# make test-all STEPS=image builds and runs it as CI does, without an engine. docs/deployment.md has more.
FROM docker.io/library/golang:1.26.8 AS build
# Where modules come from, for those who have a proxy of their own: --build-arg GOPROXY=...
ARG GOPROXY
ARG GOSUMDB
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY api ./api
COPY cmd ./cmd
COPY internal ./internal
COPY scripts/build ./scripts/build
RUN scripts/build /out/recurgentd -buildvcs=false
COPY LICENSE README.md CHANGELOG.md /out/doc/
COPY docs /out/doc/docs
COPY deploy/licences ./deploy/licences
RUN go run ./deploy/licences /out/recurgentd >/out/doc/THIRD_PARTY_LICENCES.txt
# Volumes take over the owner of the directory that they cover.
RUN mkdir -p /out/data

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build --chown=65532:65532 /out/data /data
COPY --from=build /out/doc /usr/share/doc/recurgentd
COPY --from=build /out/recurgentd /recurgentd
USER 65532:65532
ENV RECURGENT_LISTEN=0.0.0.0:8420 RECURGENT_DATA_DIR=/data RECURGENT_LOG_FORMAT=json
VOLUME /data
EXPOSE 8420
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 CMD ["/recurgentd", "healthcheck"]
ENTRYPOINT ["/recurgentd"]
CMD ["serve"]
