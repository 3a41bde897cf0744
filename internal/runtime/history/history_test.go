package history

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/contract"
)

func defaultKeys() []string {
	return []string{"password", "token", "secret", "api_key", "authorization"}
}

// Keys that match are masked at any depth, in any letter case; the rest stays byte by byte.
func TestMask(t *testing.T) {
	t.Parallel()
	tests := []struct{ raw, want string }{
		{`{"password":"hunter2","x":1}`, `{"password":"[masked]","x":1}`},
		{`{ "Password" : "hunter2" , "x" : 1 }`, `{ "Password" : "[masked]" , "x" : 1 }`},
		{`{"a":[{"token":5},{"token":{"x":["}",1]},"y":2}]}`, `{"a":[{"token":"[masked]"},{"token":"[masked]","y":2}]}`},
		{`{"secret":true}`, `{"secret":"[masked]"}`},
		{`{"secret":-1.5e3}`, `{"secret":"[masked]"}`},
		{`{"secret":[1,[2]]}`, `{"secret":"[masked]"}`},
		{`{"secret":null}`, ``},
		{`{"apiKey":"a","X-Api-Key":"b","API_KEY":"c","apikey":"d"}`, `{"apiKey":"[masked]","X-Api-Key":"[masked]","API_KEY":"[masked]","apikey":"[masked]"}`},
		{`{"db_password":"a","accessToken":"b","client.secret":"c"}`, `{"db_password":"[masked]","accessToken":"[masked]","client.secret":"[masked]"}`},
		{`{"pass\u0077ord":"a"}`, `{"pass\u0077ord":"[masked]"}`},
		{`{"tokens":1,"max_tokens":2,"secretary":"x","nontoken":"y","passwords":[]}`, ``},
		{`["password","hunter2"]`, ``},
		{`"password"`, ``},
		{`{"x":"\"password\":\"a\""}`, ``},
		{`{}`, ``}, {`null`, ``}, {``, ``},
		{`{"password"`, ``}, {`{"password":`, ``}, {`{"password":"a`, `{"password":"[masked]"`},
	}
	for _, tt := range tests {
		got, changed := Mask(json.RawMessage(tt.raw), defaultKeys())
		want := tt.want
		if want == "" {
			want = tt.raw
		}
		if string(got) != want || changed != (tt.want != "") {
			t.Errorf("Mask(%s) = %s, %v; want %s", tt.raw, got, changed, want)
		}
	}
	if _, changed := Mask(json.RawMessage(`{"password":"x"}`), nil); changed {
		t.Error("an empty list masks nothing")
	}
}

func TestMaskCostsNothing(t *testing.T) {
	raw := json.RawMessage(`{"query":"two words","limit":10,"filters":[{"field":"a","value":"b"}]}`)
	keys := defaultKeys()
	if n := testing.AllocsPerRun(100, func() { Mask(raw, keys) }); n != 0 {
		t.Errorf("Mask allocates %v times where nothing matches", n)
	}
}

func FuzzMask(f *testing.F) {
	f.Add(`{"password":"hunter2","a":[{"token":{"x":"\\\""}}]}`)
	f.Add(`{"secret":1}{`)
	f.Fuzz(func(t *testing.T, raw string) {
		got, changed := Mask(json.RawMessage(raw), defaultKeys())
		if !json.Valid([]byte(raw)) {
			return
		}
		if !json.Valid(got) || !changed && string(got) != raw {
			t.Fatalf("Mask(%s) = %s, %v", raw, got, changed)
		}
		v, err := contract.Decode(got)
		if err != nil {
			t.Fatal(err)
		}
		if secret := leaks(v); secret != "" {
			t.Fatalf("Mask(%s) = %s leaves %s", raw, got, secret)
		}
	})
}

// leaks finds a plainly named key whose value is still there.
func leaks(v any) string {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if s := leaks(e); s != "" {
				return s
			}
		}
	case map[string]any:
		for k, e := range v {
			if strings.EqualFold(k, "password") && e != nil && e != Masked {
				return k
			}
			if s := leaks(e); s != "" {
				return s
			}
		}
	}
	return ""
}

func BenchmarkMask(b *testing.B) {
	raw := json.RawMessage(`{"query":"two words","limit":10,"filters":[{"field":"a","value":"b"}]}`)
	keys := defaultKeys()
	for b.Loop() {
		Mask(raw, keys)
	}
}
