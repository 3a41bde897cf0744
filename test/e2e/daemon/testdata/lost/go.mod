module github.com/recurgentd/recurgentd/test/e2e/daemon/testdata/lost

go 1.26.8

require github.com/recurgentd/recurgentd/clients/go v0.0.0

require (
	github.com/apapsch/go-jsonmerge/v2 v2.0.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/oapi-codegen/runtime v1.8.0 // indirect
)

replace github.com/recurgentd/recurgentd/clients/go => ../../../../../clients/go
