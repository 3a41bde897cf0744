package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent/mask"
)

// DecodePolicy decodes a requested policy. Missing fields, as in policies of older versions, take their defaults. It
// returns a *PolicyError for unknown fields and for values out of range.
func DecodePolicy(data []byte) (Policy, error) {
	p, err := readPolicy(data)
	if err != nil {
		return Policy{}, err
	}
	p.addPatterns()
	for at, names := range map[string][]string{"/artifact_read_roles": p.ArtifactReadRoles,
		"/dispatch_methods": p.DispatchMethods} {
		for _, name := range names {
			if strings.TrimSpace(name) != name {
				return Policy{}, &PolicyError{at, "has a name that begins or ends with white space"}
			}
		}
	}
	return p, p.Validate()
}

// DecodeStoredPolicy is DecodePolicy for a policy that was once in force, possibly under the rules of an earlier
// version.
func DecodeStoredPolicy(data []byte) (Policy, error) {
	p, err := readPolicy(data)
	if err != nil {
		return Policy{}, err
	}
	p.Upgrade()
	return p, p.Validate()
}

// readPolicy decodes a policy over the defaults, and brings names of roles and methods into normal form.
func readPolicy(data []byte) (Policy, error) {
	p := DefaultPolicy()
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return Policy{}, policyDecodeError(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return Policy{}, &PolicyError{"", "has more than one JSON value"}
	}
	for _, names := range [][]string{p.ArtifactReadRoles, p.DispatchMethods} {
		for i := range names {
			names[i] = NormalForm(names[i])
		}
	}
	return p, nil
}

// Upgrade adapts a stored policy to the rules of this version: it adds newer patterns of secret names, and raises a
// deleting schedule to at least MinDeleteDays idle days.
func (p *Policy) Upgrade() {
	p.addPatterns()
	if m := &p.Maintenance; m.Mode == "delete" {
		m.StaleDays = max(m.StaleDays, MinDeleteDays)
	}
}

// addPatterns adds the patterns of secret names that are newer than the policy. Patterns removed by a person stay
// removed.
func (p *Policy) addPatterns() {
	p.RedactKeys, p.RedactVersion = mask.Upgrade(p.RedactKeys, p.RedactVersion), max(p.RedactVersion, mask.Edition)
}

// policyDecodeError converts an error of encoding/json to a *PolicyError that names the field.
func policyDecodeError(err error) error {
	var te *json.UnmarshalTypeError
	if errors.As(err, &te) {
		return &PolicyError{"/" + strings.ReplaceAll(te.Field, ".", "/"),
			"must be " + kindOfType(te.Type) + ", not " + strings.TrimPrefix(te.Value, "number ")}
	}
	if name, ok := strings.CutPrefix(err.Error(), `json: unknown field "`); ok {
		return &PolicyError{"/" + strings.TrimSuffix(name, `"`), "is not a known name; GET /v1/policy lists them"}
	}
	return &PolicyError{"", err.Error()}
}

// kindOfType describes a Go type in JSON terms.
func kindOfType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list of texts"
	case reflect.String:
		return "a text"
	}
	return "an object"
}
