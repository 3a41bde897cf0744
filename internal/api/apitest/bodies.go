package apitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"go.yaml.in/yaml/v3"
)

// bodies checks JSON bodies against the document's schemas. It compiles each schema once. kin-openapi compiles a
// schema, and all it refers to, for each body, which took more than half the time of end-to-end tests.
type bodies struct {
	document any
	compiler *jsonschema.Compiler
	ready    map[string]*jsonschema.Schema // by pointer
}

const documentURL = "https://recurgentd.test/openapi.json"

func newBodies(openAPI []byte) (*bodies, error) {
	b := &bodies{compiler: jsonschema.NewCompiler(), ready: map[string]*jsonschema.Schema{}}
	if err := yaml.Unmarshal(openAPI, &b.document); err != nil {
		return nil, err
	}
	text, err := json.Marshal(b.document)
	if err != nil {
		return nil, err
	}
	b.compiler.Draft, b.compiler.AssertFormat = jsonschema.Draft2020, true
	return b, b.compiler.AddResource(documentURL, bytes.NewReader(text))
}

// find follows the path through the document and its references, and returns the JSON pointer of the result, or "" if
// there is none.
func (b *bodies) find(path ...string) string {
	at, pointer := b.document, ""
	for _, part := range path {
		at, pointer = b.follow(at, pointer)
		object, _ := at.(map[string]any)
		next, ok := object[part]
		if !ok {
			return ""
		}
		at, pointer = next, pointer+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(part)
	}
	_, pointer = b.follow(at, pointer)
	return pointer
}

// follow resolves references until at is not a reference any more.
func (b *bodies) follow(at any, pointer string) (any, string) {
	object, _ := at.(map[string]any)
	ref, ok := object["$ref"].(string)
	if !ok {
		return at, pointer
	}
	pointer = strings.TrimPrefix(ref, "#")
	at = b.document
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		object, _ := at.(map[string]any)
		at = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
	}
	return b.follow(at, pointer)
}

// check checks a JSON value against the schema at the pointer. The caller holds shared.mu.
func (b *bodies) check(pointer string, data []byte) error {
	value, err := decodeJSON(data)
	if err != nil {
		return err
	}
	schema := b.ready[pointer]
	if schema == nil {
		if schema, err = b.compiler.Compile(documentURL + "#" + strings.ReplaceAll(pointer, "%", "%25")); err != nil {
			return fmt.Errorf("compile the schema at %s: %w", pointer, err)
		}
		b.ready[pointer] = schema
	}
	if err := schema.Validate(value); err != nil {
		return fmt.Errorf("%#v", err) // %#v includes the position in the value
	}
	return nil
}

// isJSON reports whether a media type is JSON.
func isJSON(media string) bool {
	media, _, _ = strings.Cut(media, ";")
	return media == "application/json" || strings.HasSuffix(media, "+json")
}

// checkSent checks a JSON request body that the daemon accepted.
func (b *bodies) checkSent(path, method, media string, body []byte) error {
	media, _, _ = strings.Cut(media, ";")
	pointer := b.find("paths", path, strings.ToLower(method), "requestBody", "content", media, "schema")
	switch {
	case pointer == "" && b.find("paths", path, strings.ToLower(method), "requestBody", "content", "*/*") != "":
		return nil // the operation takes any bytes
	case pointer == "":
		return fmt.Errorf("a body of %s is not described", media)
	}
	return b.check(pointer, body)
}

// checkGot checks the JSON body of a reply.
func (b *bodies) checkGot(path, method string, status int, media string, body []byte) error {
	media, _, _ = strings.Cut(media, ";")
	pointer := b.find("paths", path, strings.ToLower(method), "responses", strconv.Itoa(status), "content", media,
		"schema")
	if pointer == "" {
		return fmt.Errorf("a body of %s is not described for the status %d", media, status)
	}
	return b.check(pointer, body)
}
