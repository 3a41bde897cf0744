package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/strict"
)

// fields collects the errors of a body, so that a client sees all of them at once. Its methods read a member that
// strict has validated. null counts as absent: it leaves the target unchanged.
type fields struct{ errs []FieldError }

// maxFieldErrors bounds the errors that a problem lists.
const maxFieldErrors = 20

// bad records an error, up to maxFieldErrors.
func (f *fields) bad(pointer, detail, hint string) {
	if len(f.errs) < maxFieldErrors {
		f.errs = append(f.errs, FieldError{Pointer: pointer, Detail: detail, Hint: hint})
	}
}

func (f *fields) wrongKind(pointer, want string, value []byte) {
	f.bad(pointer, "must be "+want+", not "+strict.Kind(value), "")
}

// unknown reports an unknown name; known lists the valid ones.
func (f *fields) unknown(base string, name []byte, known string) {
	f.bad(strict.Pointer(base, string(name)), "is not a known name", "known names: "+known)
}

// err returns nil, or a problem with all errors.
func (f *fields) err() error {
	switch len(f.errs) {
	case 0:
		return nil
	case 1:
		return &Problem{Type: "/problems/" + codeInvalid, Title: "The body is not valid",
			Status: http.StatusUnprocessableEntity, Code: codeInvalid,
			Detail: strings.TrimSpace(f.errs[0].Pointer + " " + f.errs[0].Detail), Hint: hintOf(f.errs[0]),
			Errors: f.errs}
	}
	p := fault(codeInvalid, strconv.Itoa(len(f.errs))+" mistakes in the body", "")
	p.Errors = f.errs
	return p
}

// hintOf returns the hint of the error, or the general one of an invalid body.
func hintOf(e FieldError) string {
	if e.Hint != "" {
		return e.Hint
	}
	k, _ := kindOf(codeInvalid)
	return k.hint
}

// isNull reports whether a validated value is null.
func isNull(v []byte) bool { return v[0] == 'n' }

// text reads a string.
func (f *fields) text(pointer string, v []byte, into *string) {
	if isNull(v) {
		return
	}
	s, ok := strict.String(v)
	if !ok {
		f.wrongKind(pointer, "a string", v)
		return
	}
	*into = s
}

// short reads a string of at most max bytes.
func (f *fields) short(pointer string, v []byte, into *string, max int) {
	before := len(f.errs)
	f.text(pointer, v, into)
	if len(f.errs) == before && len(*into) > max {
		f.bad(pointer, "has more than "+strconv.Itoa(max)+" bytes", "")
	}
}

// name reads the name of a role or a method and normalizes it.
func (f *fields) name(pointer, field string, v []byte, into *string) {
	before := len(f.errs)
	f.text(pointer, v, into)
	if len(f.errs) != before || isNull(v) {
		return
	}
	kept, err := agent.Name(field, *into)
	if err == nil {
		*into = kept
		return
	}
	var bad *agent.NameError
	if errors.As(err, &bad) {
		f.bad(pointer, bad.Reason,
			"names have 1 to 200 characters, no slashes, no control or invisible characters, no white space at their ends")
	}
}

func (f *fields) boolean(pointer string, v []byte, into *bool) {
	switch v[0] {
	case 't':
		*into = true
	case 'f':
		*into = false
	case 'n':
	default:
		f.wrongKind(pointer, "a boolean", v)
	}
}

// integer reads a whole number from lo to hi.
func (f *fields) integer(pointer string, v []byte, into *int, lo, hi int) {
	if isNull(v) {
		return
	}
	if strict.Kind(v) != "a number" {
		f.wrongKind(pointer, "an integer", v)
		return
	}
	n, err := strconv.Atoi(string(v))
	if err != nil {
		// 5e3 and 5.0 are integers, too.
		x, err := strconv.ParseFloat(string(v), 64)
		// beyond 2^53, a float64 does not represent every integer
		if err != nil || x != math.Trunc(x) || math.Abs(x) > 1<<53 {
			f.bad(pointer, "must be an integer", "")
			return
		}
		n = int(x)
	}
	if n < lo || n > hi {
		f.bad(pointer, fmt.Sprintf("must be %d to %d", lo, hi), "")
		return
	}
	*into = n
}

// number reads a number that fits in a float64.
func (f *fields) number(pointer string, v []byte, into **float64) {
	switch {
	case isNull(v):
	case strict.Kind(v) != "a number":
		f.wrongKind(pointer, "a number", v)
	case json.Unmarshal(v, into) != nil:
		f.bad(pointer, "is too large", "")
	}
}

// raw takes any value except null, without a copy.
func (f *fields) raw(v []byte, into *json.RawMessage) {
	if !isNull(v) {
		*into = v
	}
}

func (f *fields) object(pointer string, v []byte, into *json.RawMessage) {
	if !isNull(v) && v[0] != '{' {
		f.wrongKind(pointer, "an object", v)
		return
	}
	f.raw(v, into)
}

// array reads an array. Its elements alias v. An empty array sets an empty list, not nil.
func (f *fields) array(pointer string, v []byte, into *[]json.RawMessage) {
	if isNull(v) {
		return
	}
	if v[0] != '[' {
		f.wrongKind(pointer, "an array", v)
		return
	}
	list := make([]json.RawMessage, 0, 4)
	strict.Elements(v, func(value []byte) { list = append(list, value) })
	*into = list
}

const contractNames = "purpose, deliverable, acceptance, failure_policy, signature"

// contractMember reads one member of a contract. It reports whether the name is a member.
func (f *fields) contractMember(base string, name, v []byte, into *agent.Contract) bool {
	switch string(name) {
	case "purpose":
		f.text(base+"/purpose", v, &into.Purpose)
	case "deliverable":
		f.raw(v, &into.Deliverable)
	case "acceptance":
		f.raw(v, &into.Acceptance)
	case "failure_policy":
		f.raw(v, &into.FailurePolicy)
	case "signature":
		f.object(base+"/signature", v, &into.Signature)
	default:
		return false
	}
	return true
}

// contract reads a contract. It returns nil for null.
func (f *fields) contract(base string, v []byte) *agent.Contract {
	if isNull(v) {
		return nil
	}
	if v[0] != '{' {
		f.wrongKind(base, "an object", v)
		return nil
	}
	c := &agent.Contract{}
	_ = strict.Members(v, func(name, value []byte) error { // cannot fail: the whole body has passed
		if !f.contractMember(base, name, value, c) {
			f.unknown(base, name, contractNames)
		}
		return nil
	})
	return c
}

// stringMap reads an object whose values are strings, with at most limit members.
func (f *fields) stringMap(base string, v []byte, limit int) map[string]string {
	if isNull(v) {
		return nil
	}
	if v[0] != '{' {
		f.wrongKind(base, "an object of strings", v)
		return nil
	}
	m := map[string]string{}
	_ = strict.Members(v, func(name, value []byte) error { // cannot fail: the whole body has passed
		text, ok := strict.String(value)
		switch {
		case !ok:
			f.wrongKind(strict.Pointer(base, string(name)), "a string", value)
		case len(name) > 200 || len(text) > 4000:
			f.bad(strict.Pointer(base, string(name)),
				"has a name of more than 200 bytes or a text of more than 4000", "")
		default:
			m[string(name)] = text
		}
		return nil
	})
	if len(m) > limit {
		f.bad(base, "has more than "+strconv.Itoa(limit)+" names", "")
	}
	return m
}

// decode calls member for each member of the body. With optional, an empty body counts as an empty object. It returns
// a problem if the body is not an object, or with all errors that member reported.
func (s *server) decode(w *reply, r *http.Request, optional bool, member func(f *fields, name, value []byte)) error {
	data, err := s.readBody(w, r)
	if err != nil {
		return err
	}
	var f fields
	if len(data) == 0 && optional {
		return nil
	}
	if err := strict.Members(data, func(name, value []byte) error {
		member(&f, name, value)
		return nil
	}); err != nil {
		return shapeProblem(err)
	}
	return f.err()
}

// shapeProblem distinguishes valid JSON that is not an object (422) from a body that cannot be parsed (400).
func shapeProblem(err error) error {
	if e, ok := err.(*strict.Error); ok && strings.HasPrefix(e.Reason,
		"must be an object") { // strict returns it bare
		return fault(codeInvalid, "the body "+e.Reason, "").in("", e.Reason)
	}
	return err
}
