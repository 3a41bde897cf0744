package wire

import (
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// filled sets every field of the struct that v points to, including those of nested structs.
func filled(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			filled(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		filled(v.Index(0))
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"seccomp": "on", "landlock": "on (abi 7)"}))
	case reflect.String:
		v.SetString("é " + v.Type().String())
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(77)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(99)
	default:
		panic("a member of type " + v.Type().String())
	}
}

// Every field of the start messages arrives, including fields added later.
func TestMessagesOfAStartArriveWhole(t *testing.T) {
	t.Parallel()
	var b Builder
	var c Config
	filled(reflect.ValueOf(&c).Elem())
	c.Put(&b)
	if got, err := ParseConfig(b.Finish()[frameHead:]); err != nil || !reflect.DeepEqual(*got, c) {
		t.Errorf("%v: got %+v, want %+v", err, got, c)
	}
	var l Launch
	filled(reflect.ValueOf(&l).Elem())
	l.Put(&b)
	if got, err := ParseLaunch(b.Finish()[frameHead:]); err != nil || !reflect.DeepEqual(*got, l) {
		t.Errorf("%v: got %+v, want %+v", err, got, l)
	}
	var r Ready
	filled(reflect.ValueOf(&r).Elem())
	r.Put(&b)
	if got, err := ParseReady(b.Finish()[frameHead:]); err != nil || !reflect.DeepEqual(*got, r) {
		t.Errorf("%v: got %+v, want %+v", err, got, r)
	}
	var facts report.Facts
	var refusal report.Refusal
	filled(reflect.ValueOf(&facts).Elem())
	filled(reflect.ValueOf(&refusal).Elem())
	facts.Fixes = nil // the daemon has them from another message
	for _, l := range []Loaded{{Facts: &facts}, {Facts: &report.Facts{}}, {Refusal: &refusal},
		{Refusal: &report.Refusal{}}, {Error: "x"}, {Fault: "y"}} {
		l.Put(&b)
		if got, err := ParseLoaded(b.Finish()[frameHead:]); err != nil || !reflect.DeepEqual(*got, l) {
			t.Errorf("%v: got %+v, want %+v", err, got, l)
		}
	}
	// Each flag by itself: two flags swapped on the wire would not show if all are set.
	for i := range factFlags(&facts) {
		var one report.Facts
		*factFlags(&one)[i] = true
		(&Loaded{Facts: &one}).Put(&b)
		if got, err := ParseLoaded(b.Finish()[frameHead:]); err != nil || !reflect.DeepEqual(*got.Facts, one) {
			t.Errorf("%v: got %+v, want %+v", err, got, one)
		}
	}
}

func TestFactsAreBounded(t *testing.T) {
	t.Parallel()
	var b Builder
	(&Loaded{Facts: &report.Facts{Interface: string(make([]byte, MaxFacts))}}).Put(&b)
	if got, err := ParseLoaded(b.Finish()[frameHead:]); err != nil || got.Facts != nil || got.Error == "" {
		t.Errorf("%v: got %+v", err, got)
	}
}

func FuzzParseLoaded(f *testing.F) {
	var b Builder
	for _, l := range []Loaded{{Facts: &report.Facts{Imports: []string{"sort"}, UsesArgs: true, Literals: []string{"1"},
		Interface: "{}"}},
		{Refusal: &report.Refusal{Type: "invalid_code", Line: 3, Errors: []string{"x"}}}, {Error: "x"}, {Fault: "y"}} {
		l.Put(&b)
		f.Add(append([]byte(nil), b.Finish()[frameHead:]...))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		l, err := ParseLoaded(payload)
		if err != nil {
			return
		}
		if l.Facts != nil {
			for _, list := range factLists(l.Facts) {
				for _, s := range *list {
					if !utf8.ValidString(s) {
						t.Errorf("a fact that is not UTF-8: %q", s)
					}
				}
			}
		}
		if l.Refusal != nil && (l.Refusal.Line < 0 || l.Refusal.Column < 0) {
			t.Errorf("a refusal at %d:%d", l.Refusal.Line, l.Refusal.Column)
		}
		// A parsed report can be encoded again.
		var b Builder
		l.Put(&b)
		if _, err := ParseLoaded(b.Finish()[frameHead:]); err != nil && len(payload) < MaxFacts/2 {
			t.Errorf("%+v: %v", l, err)
		}
	})
}

func FuzzParseReady(f *testing.F) {
	var b Builder
	(&Ready{Layers: map[string]string{"seccomp": "on"}, Build: "x"}).Put(&b)
	f.Add(append([]byte(nil), b.Finish()[frameHead:]...))
	f.Fuzz(func(t *testing.T, payload []byte) {
		r, err := ParseReady(payload)
		if err != nil {
			return
		}
		for key, text := range r.Layers {
			if !utf8.ValidString(key + text) {
				t.Errorf("a layer that is not UTF-8: %q %q", key, text)
			}
		}
	})
}
