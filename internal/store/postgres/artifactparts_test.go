package postgres

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// fill sets every member of a struct to a non-zero value, so the test covers members added to the type later.
func fill(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Struct:
		if t, is := v.Addr().Interface().(*time.Time); is {
			*t = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), depth)
			}
		}
	case reflect.Pointer:
		if depth > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), depth-1)
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"n":12345678901234567890}`))
		} else if depth > 0 {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			fill(v.Index(0), depth-1)
			fill(v.Index(1), depth-1)
		}
	case reflect.Map:
		if depth > 0 {
			v.Set(reflect.MakeMap(v.Type()))
			k, x := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(k, depth-1)
			fill(x, depth-1)
			v.SetMapIndex(k, x)
		}
	case reflect.String:
		v.SetString("text")
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Bool:
		v.SetBool(true)
	}
}

// Whatever an artifact holds is in its head or in its body, and a change of either is noticed.
func TestArtifactParts(t *testing.T) {
	t.Parallel()
	var a agent.Artifact
	fill(reflect.ValueOf(&a).Elem(), 6)
	a.Generations[0].ID, a.Generations[1].ID = "gen-2", "gen-1"
	want, err := json.Marshal(&a)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeArtifact(agent.Encoded(headOf(&a)), agent.Encoded(bodyOf(&a)))
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := json.Marshal(got); string(text) != string(want) {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	if !store.SameBody(&a, &a) {
		t.Error("an artifact has another body than itself")
	}
	body := reflect.TypeFor[agent.Artifact]()
	for i := range body.NumField() {
		x := a
		reflect.ValueOf(&x).Elem().Field(i).SetZero()
		noticed := !store.SameBody(&a, &x) || string(agent.Encoded(headOf(&a))) != string(agent.Encoded(headOf(&x)))
		if !noticed {
			t.Errorf("a change of %s is not noticed", body.Field(i).Name)
		}
	}
	program := reflect.TypeFor[agent.Generation]()
	for i := range program.NumField() {
		x := a
		g := *a.Generations[0]
		x.Generations = []*agent.Generation{&g, a.Generations[1]}
		reflect.ValueOf(&g).Elem().Field(i).SetZero()
		if store.SameBody(&a, &x) && string(agent.Encoded(headOf(&a))) == string(agent.Encoded(headOf(&x))) {
			t.Errorf("a change of a generation's %s is not noticed", program.Field(i).Name)
		}
	}
}

// A counted call changes the head only.
func TestCountedCallsLeaveTheBody(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	a := (*agent.Artifact)(nil).Apply(agent.ArtifactChange{Role: "r", MethodName: "m", At: now,
		Generation: &agent.Generation{ID: "gen-1", Code: "package tool"}})
	first := agent.ArtifactChange{Role: "r", MethodName: "m", At: now, Result: agent.ClassOK, SessionID: "s",
		Shapes: map[string]string{"u": "x"}}
	a = a.Apply(first)
	first.Shapes = map[string]string{"u": "x"}
	if b := a.Apply(first); !store.SameBody(a, b) {
		t.Error("a counted call changed the body")
	}
	first.Fixture = &agent.Fixture{CallID: "c"}
	if b := a.Apply(first); store.SameBody(a, b) {
		t.Error("a fixture did not change the body")
	}
}
