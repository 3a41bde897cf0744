# The image holds one static binary, CA certificates and nothing else; it runs as nobody.
#
#   docker build -t recurgentd .
#   docker run --rm -p 127.0.0.1:8420:8420 -v recurgent:/data -v $PWD/tokens:/run/tokens:ro \
#     -e RECURGENT_AUTH_TOKENS_FILE=/run/tokens recurgentd
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w" -o /out/recurgentd ./cmd/recurgentd
# Volumes take over the owner of the directory that they cover.
RUN mkdir -p /out/data

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build --chown=65532:65532 /out/data /data
COPY --from=build /out/recurgentd /recurgentd
USER 65532:65532
ENV RECURGENT_LISTEN=0.0.0.0:8420 RECURGENT_DATA_DIR=/data RECURGENT_LOG_FORMAT=json
VOLUME /data
EXPOSE 8420
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 CMD ["/recurgentd", "healthcheck"]
ENTRYPOINT ["/recurgentd"]
CMD ["serve"]
