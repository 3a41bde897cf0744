package main

import (
	"net/http"
	"testing"
)

func conforms(t *testing.T, req *http.Request, body []byte, r response) {}
