package call

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
	"github.com/recurgentd/recurgentd/internal/agent/mask"
)

// Arguments that an interface makes secret: by position, by an alias, by a schema, and all arguments of a variadic
// parameter.
func TestInterfacesNameSecrets(t *testing.T) {
	t.Parallel()
	param := func(name string, more func(p *agent.Parameter)) agent.Parameter {
		p := agent.Parameter{Name: name}
		if more != nil {
			more(&p)
		}
		return p
	}
	user := param("user", nil)
	for _, tt := range []struct {
		name   string
		method string
		params []agent.Parameter
		args   []json.RawMessage
		kwargs string
		want   string
	}{
		{"nothing is known", "m", nil, []json.RawMessage{json.RawMessage(`"bob"`), json.RawMessage(`"hunter2"`)}, `{}`,
			`["bob","hunter2"] {}`},
		{"a position", "m", []agent.Parameter{user, param("password", nil)},
			[]json.RawMessage{json.RawMessage(`"bob"`), json.RawMessage(`"hunter2"`), json.RawMessage(`"x"`)}, `{}`,
			`["bob","[masked]","x"] {}`},
		{"a number", "m", []agent.Parameter{param("pin", nil), param("otp_token", nil)},
			[]json.RawMessage{json.RawMessage(`1`), json.RawMessage(`123456`)}, `{}`,
			`[1,"[masked]"] {}`},
		{"an alias", "m", []agent.Parameter{user, param("p",
			func(p *agent.Parameter) { p.Aliases = []string{"passwd"} })}, []json.RawMessage{json.RawMessage(`"bob"`),
			json.RawMessage(`"hunter2"`)}, `{}`,
			`["bob","[masked]"] {}`},
		{"a keyword that stands for the parameter", "m",
			[]agent.Parameter{param("api_key", func(p *agent.Parameter) { p.Aliases = []string{"k"} })}, nil,
			`{"k":"abc","o":{"k":1}}`, `[] {"k":"[masked]","o":{"k":1}}`},
		{"a schema", "m", []agent.Parameter{param("word",
			func(p *agent.Parameter) {
				p.Schema = json.RawMessage(
					`{"type":"string","format":"password"}`)
			})}, []json.RawMessage{json.RawMessage(`"abc"`)}, `{}`, `["[masked]"] {}`},
		{"a variadic parameter", "m", []agent.Parameter{user, param("secrets",
			func(p *agent.Parameter) { p.Variadic = true })}, []json.RawMessage{json.RawMessage(`"bob"`),
			json.RawMessage(`"a"`), json.RawMessage(`"b"`)}, `{}`,
			`["bob","[masked]","[masked]"] {}`},
		{"a setter", "api_token=", nil, []json.RawMessage{json.RawMessage(`"abc"`)}, `{}`, `["[masked]"] {}`},
		{"a sort key", "m", []agent.Parameter{param("key", nil)}, []json.RawMessage{json.RawMessage(`"price"`)},
			`{"key":"name"}`,
			`["price"] {"key":"name"}`},
	} {
		c := &Call{Rules: mask.Compile(mask.Defaults()), Method: tt.method, Args: tt.args,
			Kwargs: json.RawMessage(tt.kwargs)}
		c.maskInput(nil)
		c.Reveal(&agent.Interface{Parameters: tt.params})
		in := c.Shown()
		if got := string(jsonenc.Array(in.Args)) + " " +
			string(in.Kwargs); got != tt.want || in.Masked != strings.Contains(tt.want, mask.Masked) {
			t.Errorf("%s: %s, masked %v, want %s", tt.name, got, in.Masked, tt.want)
		}
	}
}

// A call below another one masks the secrets of that one, wherever they are.
func TestSecretsAreInherited(t *testing.T) {
	t.Parallel()
	c := &Call{Rules: mask.Compile(mask.Defaults()), Inherited: []string{"hunter2hunter2"},
		Args:   []json.RawMessage{json.RawMessage(`"log in as bob:hunter2hunter2"`), json.RawMessage(`1`)},
		Kwargs: json.RawMessage(`{"note":"HUNTER2","hex":"68756e7465723268756e74657232"}`)}
	c.maskInput(nil)
	if got, want := string(jsonenc.Array(c.Shown().Args))+string(c.Shown().Kwargs),
		`["log in as bob:[masked]",1]{"note":"HUNTER2","hex":"[masked]"}`; got != want || !c.Shown().Masked {
		t.Errorf("%s, want %s", got, want)
	}
	if got := c.Mask("error: hunter2hunter2 is wrong; password=other"); got != "error: [masked] is wrong; password=[masked]" {
		t.Errorf("a message: %s", got)
	}
}
func TestDeclaredSecret(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]bool{
		``: false, `{"type":"string"}`: false, `{"type":"string","format":"password"}`: true,
		`{"writeOnly":true}`: true, `{"writeOnly":false}`: false,
		`{"format":"pass\u0077ord"}`: true, `{"\u0077riteOnly":true}`: true, `{"description":"a password"}`: false,
		`{"format":"date"}`: false, `true`: false,
		`{"WRITEONLY":true}`: true,
	} {
		if got := declaredSecret([]byte(schema)); got != want {
			t.Errorf("%s: got %v, want %v", schema, got, want)
		}
	}
}
