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

// DecodePolicy reads a policy that somebody wants. Names that it lacks, as policies of older versions do, have their defaults. Unknown names and values out of range are refused with a *PolicyError.
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

// DecodeStoredPolicy is DecodePolicy for a policy that was in force once, maybe by the rules of an earlier version.
func DecodeStoredPolicy(data []byte) (Policy, error) {
	p, err := readPolicy(data)
	if err != nil {
		return Policy{}, err
	}
	p.Upgrade()
	return p, p.Validate()
}

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

// Upgrade makes of a stored policy one by the rules of this version: it has the patterns of secret names that are newer than it, and what a schedule
// deletes was idle for MinDeleteDays.
func (p *Policy) Upgrade() {
	p.addPatterns()
	if m := &p.Maintenance; m.Mode == "delete" {
		m.StaleDays = max(m.StaleDays, MinDeleteDays)
	}
}

// addPatterns adds the patterns of secret names that are newer than the policy. Those that a person has removed stay removed.
func (p *Policy) addPatterns() {
	p.RedactKeys, p.RedactVersion = mask.Upgrade(p.RedactKeys, p.RedactVersion), max(p.RedactVersion, mask.Edition)
}

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

// kindOfType names a Go type as JSON does.
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
