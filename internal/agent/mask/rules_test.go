package mask_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent/mask"
)

func rules() *mask.Rules { return mask.Compile(mask.Defaults()) }

const pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq4\nq83Zk2o=\n-----END RSA PRIVATE KEY-----"

// join splits sample secrets, so that scanners of this repository do not report them.
func join(parts ...string) string { return strings.Join(parts, "") }

func TestJSON(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ raw, want string }{
		{`{"password":"x","user":"bob"}`, `{"password":"[masked]","user":"bob"}`},
		{`{"a":[{"dbPassword": "x" }]}`, `{"a":[{"dbPassword": "[masked]" }]}`},
		{`{"X-Api-Key":"x","Set-Cookie":"a=b","client_secret":"s","private_key":"k","bearer":"b","passwd":"p"}`,
			`{"X-Api-Key":"[masked]","Set-Cookie":"[masked]","client_secret":"[masked]","private_key":"[masked]","bearer":"[masked]","passwd":"[masked]"}`},
		{`{"token":{"a":1},"secret":[1,2],"pwd":12345678}`,
			`{"token":"[masked]","secret":"[masked]","pwd":"[masked]"}`},
		{`{"token":null,"secret":true,"pass":false}`, `{"token":null,"secret":true,"pass":false}`},
		{`{"pass\u0077ord":"x"}`, `{"pass\u0077ord":"[masked]"}`},
		{`{"key":"9fQ2xLm4Zt7Rb1Kc"}`, `{"key":"[masked]"}`},
		{`{"subscription-key":"0123456789abcdef0123456789abcdef"}`, `{"subscription-key":"[masked]"}`},
		{`["https://h.example/x?api_key=k1&page=2#top"]`, `["https://h.example/x?api_key=%5Bmasked%5D&page=2#top"]`},
		{`["https://bob:pw@h.example/x"]`, `["https://%5Bmasked%5D@h.example/x"]`},
		{`["https://tok@h.example/x","ssh://git@h.example/x"]`,
			`["https://%5Bmasked%5D@h.example/x","ssh://git@h.example/x"]`},
		{`["https:\/\/h.example\/?access_token=k1"]`, `["https://h.example/?access_token=%5Bmasked%5D"]`},
		{`["https://h.example/#access_token=k1&x=1"]`, `["https://h.example/#access_token=%5Bmasked%5D&x=1"]`},
		{`["https://h.example/?next=https%3A%2F%2Fi.example%2F%3Ftoken%3Dk1&b=2"]`,
			`["https://h.example/?next=https%3A%2F%2Fi.example%2F%3Ftoken%3D%255Bmasked%255D&b=2"]`},
		{`["/path?token=k1&page=2"]`, `["/path?token=[masked]&page=2"]`},
		{`["` + join("https://hooks.slack", ".com/services/T000/B000/XXXX") + `"]`,
			`["https://hooks.slack.com/services/%5Bmasked%5D"]`},
		{`["` + join("https://api.telegram", ".org/bot123:AAx/getMe") + `"]`,
			`["https://api.telegram.org/bot%5Bmasked%5D/getMe"]`},
		{`["Authorization: Bearer abc"]`, `["Authorization: Bearer [masked]"]`},
		{`["Authorization: abc","X-Api-Key: k1\nAccept: */*"]`,
			`["Authorization: [masked]","X-Api-Key: [masked]\nAccept: */*"]`},
		{`["Cookie: sid=1; theme=dark"]`, `["Cookie: [masked]"]`},
		{`["curl -H 'Authorization: token abc' https://h.example"]`,
			`["curl -H 'Authorization: token [masked]' https://h.example"]`},
		{`["host=h user=bob password=pw dbname=x"]`, `["host=h user=bob password=[masked] dbname=x"]`},
		{`["password = \"two words\" # comment"]`, `["password = \"[masked]\" # comment"]`},
		{`["grant_type=password&client_secret=s1&x=1"]`, `["grant_type=password&client_secret=[masked]&x=1"]`},
		{`["user[password]=pw&x=1"]`, `["user[password]=[masked]&x=1"]`},
		{`["{\"password\":\"p w\",\"n\":5,\"token\":12,\"secret\":{\"a\":1},\"pass\":true}"]`,
			`["{\"password\":\"[masked]\",\"n\":5,\"token\":\"[masked]\",\"secret\":\"[masked]\",\"pass\":true}"]`},
		{`["a Bearer 0123456789abcdef"]`, `["a Bearer [masked]"]`},
		{`["Basic ` + base64.StdEncoding.EncodeToString([]byte("user:pw")) + `"]`, `["Basic [masked]"]`},
		{`{"` + join("gh", "p_0123456789abcdefghijABCDEFGHIJ012345") + `":1}`, `{"[masked]":1}`},
		{`["x\n` + join("gh", "p_0123456789abcdefghijABCDEFGHIJ012345") + `"]`, `["x\n[masked]"]`},
		{string(quoted("before " + pem + " after")), `"before [masked] after"`},
		{string(quoted("cut " + pem[:60])), `"cut [masked]"`},
	} {
		got, changed := rules().JSON(json.RawMessage(tt.raw))
		if string(got) != tt.want || changed != (tt.raw != tt.want) {
			t.Errorf("%s became %s, want %s", tt.raw, got, tt.want)
		}
	}
}

func quoted(s string) []byte {
	out, _ := json.Marshal(s)
	return out
}

// Each well-known kind of secret is found in a sentence, in an assignment to an ordinary name, in a path and in JSON.
func TestShapes(t *testing.T) {
	t.Parallel()
	const hex40, mixed = "0123456789abcdef0123456789abcdef01234567",
		"AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"
	for _, s := range []string{
		join("AK", "IAIOSFODNN7ABCDEFG"), join("AS", "IAIOSFODNN7ABCDEFG"), join("gh", "p_", mixed[:36]),
		join("gho", "_", mixed[:36]), join("github", "_pat_", mixed[:60]),
		join("glpat", "-", mixed[:20]), join("xox", "b-123456789012-123456789012-", mixed[:24]),
		join("xapp", "-1-A0123-456-", mixed[:40]), join("sk", "_live_", mixed[:24]),
		join("rk", "_test_", mixed[:24]), join("whsec", "_", mixed[:32]), join("sk", "-ant-api03-", mixed),
		join("sk", "-proj-", mixed), join("sk", "-", mixed[:48]), join("AI", "zaSy", mixed[:33]),
		join("ya29", ".", mixed), join("GOCSPX", "-", mixed[:28]), join("npm", "_", mixed[:36]),
		join("pypi", "-AgEIcHlwaS5vcmc", mixed), join("dckr", "_pat_", mixed[:27]),
		join("dop", "_v1_", hex40, hex40[:24]),
		join("hvs", ".", mixed), join("SG", ".", mixed[:22], ".", mixed[:43]),
		join("xkeysib", "-", hex40, hex40[:24], "-", mixed[:16]), join("shpat", "_", hex40[:32]),
		join("hf", "_", mixed[:34]),
		join("ey", "JhbGciOiJIUzI1NiJ9.ey", "JzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"),
		join("AGE-SECRET", "-KEY-1", strings.ToUpper(mixed[:58])),
	} {
		for _, around := range []string{"%s", "use %s please", "x=%s", "https://h.example/%s/x",
			"https://h.example/?q=%s", `{"name":"%s"}`, "(%s)", "a\n%s\nb", "my-%s", "https://h.example/?q=a%%20%s",
			"%%3D%s"} {
			text := strings.ReplaceAll(strings.ReplaceAll(around, "%%", "%"), "%s", s)
			if got := rules().Text(text); strings.Contains(got, s) || strings.Contains(got, s[len(s)-10:]) {
				t.Errorf("%q became %q", text, got)
			}
			if got, _ := rules().JSON(quoted(text)); strings.Contains(string(got), s[len(s)-10:]) || !json.Valid(got) {
				t.Errorf("%q became %s", text, got)
			}
		}
	}
}

// Values that callers pass every day are not masked.
func TestOrdinaryValuesStay(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{"sort_key":"price"}`, `{"key":"price"}`, `{"key":"user_12345"}`, `{"key":"2026-11-22T15:44:09Z"}`,
		`{"key":"products/2026/item-price-list"}`, `{"key":5}`, `{"keys":["a","b"]}`,
		`{"primary_key":"id"}`, `{"primary_key":"customer_account_identifier"}`, `{"foreign_key":"orders.customer_id"}`,
		`{"keyboard":"qwerty"}`, `{"monkey":"capuchin"}`, `{"turkey":"Ankara"}`,
		`{"key":"customerShippingAddressLine"}`,
		`{"token_count":5}`, `{"max_tokens":4096}`, `{"prompt_tokens":10,"completion_tokens":2}`,
		`{"tokens":["the","cat"]}`, `{"tokenizer":"bpe"}`, `{"next_page_token":"CAUQAA"}`, `{"nextPageToken":"CAUQAA"}`,
		`{"continuation_token":"abc"}`,
		`{"secretary":"Ms Smith"}`, `{"passenger":"Bob"}`, `{"compass":"north"}`, `{"passport_country":"DE"}`,
		`{"author":"Orwell"}`, `{"authority":"EU"}`, `{"auth":"none"}`, `{"auth":"oauth2"}`, `{"authorized":true}`,
		`{"password_policy":"strict"}`,
		`{"password_length":12}`, `{"has_password":true}`, `{"signature":"func add(a, b int) int"}`, `{"sig":"+"}`,
		`{"cookie_count":3}`, `{"bearer_bonds":7}`, `{"id":"3f2504e0-4f89-11d3-9a0c-0305e82c3301"}`,
		`{"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}`,
		`{"md5":"d41d8cd98f00b204e9800998ecf8427e"}`, `{"commit":"cd067e8b1f0aa3c2d4e5f60718293a4b5c6d7e8f"}`,
		`[19.99,1299,-3.5e10]`, `["EUR 1,299.00"]`, `["12:30","2026-11-22","2026-11-22T15:44:09.123Z"]`,
		`["user@example.org"]`, `["mailto:user@example.org"]`, `["+49 30 901820"]`, `["DE89370400440532013000"]`,
		`["978-3-16-148410-0"]`,
		`["https://example.org/search?q=price&sort=asc&page=2&key=name"]`,
		`["https://example.org/a/b/c.html#section-2"]`, `["https://en.wikipedia.org/wiki/Token_(disambiguation)"]`,
		`["http://localhost:8080/v1/calls?limit=10&after=call_06h02bt009y13d01"]`,
		`["https://maps.example.org/@52.52,13.405,12z"]`, `["https://medium.example/@author/post"]`,
		`["git@github.com:recurgentd/recurgentd.git"]`, `["ssh://git@github.com/x/y.git"]`, `["urn:isbn:0451450523"]`,
		`["data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"]`,
		`["the password must be long"]`, `["Password: must be at least 8 characters"]`,
		`["the secret: be kind to others"]`, `["token: unexpected end of input"]`, `["unknown key: price"]`,
		`["what is a bearer token?"]`, `["Basic authentication is old"]`, `["Basic understanding"]`,
		`["sort by key=price, then key=name"]`, `["a==b"]`, `["x := token"]`, `["if token == nil {"]`,
		`["token != other"]`, `["risk-free-investment-plan"]`, `["task-management-software-for-teams"]`,
		`["ask-me-anything-about-the-weather"]`, `["desk_live_chat"]`,
		`["eyJ is how tokens begin"]`, `["some-long-kebab-case-identifier-name"]`,
		`["SomeVeryLongCamelCaseIdentifierName"]`, `["com.example.package.ClassName.methodName"]`,
		`["lorem_ipsum_dolor_sit_amet_consectetur"]`, `["AAAAAAAAAAAAAAAAAAAAAAAAAAAA"]`,
		`["0000-0000-0000-0000-0000"]`,
		`["1.2.3-beta.4+build.567"]`, `["v2026.11.22-rc1"]`, `["192.168.178.100:8080"]`, `["fe80::1ff:fe23:4567:890a"]`,
		`["00:1B:44:11:3A:B7"]`, `["/usr/local/lib/python3.12/site-packages"]`, `["C:\\Users\\Bob\\Documents"]`,
		`["SELECT id, key FROM items WHERE key = 'price'"]`,
		`["{\"key\":\"price\",\"max_tokens\":5}"]`, `["a: 1, b: 2"]`, `["name: Bob\nage: 5"]`,
		`["Dear Sir:\nthank you"]`, `["Ω ≈ ç √ ∫ : ˜ = µ ≤"]`, `["line one\nline two\tend"]`, `["\u00e9\u00e8"]`,
		`["{}"]`, `["x=1&y=2"]`, `["E=mc2"]`, `["a:b:c:d"]`,
		`["-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"]`,
		`["-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----"]`,
		`{"page":{"after":"sess_06h02bt009y13d01p6sck3a6a0"}}`, `{"roles":["admin"],"code":"SAVE20"}`, `null`, `true`,
		`""`, `{}`,
	} {
		if got, changed := rules().JSON(json.RawMessage(raw)); changed || string(got) != raw {
			t.Errorf("%s became %s", raw, got)
		}
	}
}

// Positional arguments are masked by the names of their parameters.
func TestCall(t *testing.T) {
	t.Parallel()
	args := []json.RawMessage{json.RawMessage(`"bob"`), json.RawMessage(`"hunter22"`),
		json.RawMessage(`{"pin":"1","cookie":[7654321]}`)}
	rename := func(name string) string { return map[string]string{"k": "api_key"}[name] }
	c := rules().Call(args, json.RawMessage(
		`{"k":"alias-value","o":{"k":"inner"},"url":"https://u:user-info@h.example/?key=9fQ2xLm4Zt7Rb1Kc"}`),
		[]string{"user", "password"}, rename)
	if string(c.Args[0]) != `"bob"` || string(c.Args[1]) != `"[masked]"` ||
		string(c.Args[2]) != `{"pin":"1","cookie":"[masked]"}` || string(args[1]) != `"hunter22"` {
		t.Errorf("args: %s of %s", c.Args, args)
	}
	if want := `{"k":"[masked]","o":{"k":"inner"},"url":"https://%5Bmasked%5D@h.example/?key=%5Bmasked%5D"}`; string(c.Kwargs) != want {
		t.Errorf("kwargs: %s, want %s", c.Kwargs, want)
	}
	for _, want := range []string{"hunter22", "7654321", "alias-value", "user-info", "9fQ2xLm4Zt7Rb1Kc"} {
		if !strings.Contains(strings.Join(c.Secrets, "\n"), want) {
			t.Errorf("%q is not among the secrets %q", want, c.Secrets)
		}
	}
	if c := rules().Call(args[:1], json.RawMessage(`{"n":1}`), nil,
		nil); c.Changed || len(c.Secrets) > 0 || &c.Args[0] != &args[0] {
		t.Errorf("a call without secrets became %+v", c)
	}
}

func TestNoRules(t *testing.T) {
	t.Parallel()
	r := mask.Compile(nil)
	if got, changed := r.JSON(json.RawMessage(
		`{"password":"x"}`)); changed || r.Text("password=x") != "password=x" || r.Secret("password") {
		t.Errorf("an empty list masks: %s", got)
	}
	if got, _ := mask.Compile([]string{"", "?", "!", "_", "pin", "next_page_token",
		"!token"}).JSON(json.RawMessage(`{"pin":"1","nextPageToken":"2","token":"3"}`)); string(
		got) != `{"pin":"[masked]","nextPageToken":"[masked]","token":"3"}` {
		t.Errorf("a list of one's own: %s", got)
	}
}

func TestUpgrade(t *testing.T) {
	t.Parallel()
	got := mask.Upgrade([]string{"password", "pin"}, 1)
	r := mask.Compile(got)
	if !r.Secret("password") || !r.Secret("pin") || !r.Secret("passwd") || r.Secret("token") {
		t.Errorf("upgraded: %q", got)
	}
	if got := mask.Upgrade([]string{"pin"}, mask.Edition); len(got) != 1 {
		t.Errorf("a list of today became %q", got)
	}
	if got := mask.Upgrade(nil, 1); len(got) != 0 {
		t.Errorf("an empty list became %q", got)
	}
}

// A name that matches no pattern is remembered for the rest of the value, but not for renamed members, nor for another
// name with the same slot.
func TestNamesThatSayNothing(t *testing.T) {
	t.Parallel()
	r := mask.Compile([]string{"token", "secret"})
	rename := func(name string) string { return map[string]string{"given": "token"}[name] }
	got := r.Call(nil, json.RawMessage(
		`{"in":[{"given":"a"},{"given":"b"}],"given":"c","deep":{"given":"d","open":"e","token":"f"}}`), nil, rename)
	if want := `{"in":[{"given":"a"},{"given":"b"}],"given":"[masked]","deep":{"given":"d","open":"e","token":"[masked]"}}`; string(got.Kwargs) != want {
		t.Errorf("got %s\nwant %s", got.Kwargs, want)
	}
	for i := range 64 { // ordinary names of all kinds between secret ones
		name := strings.Repeat(string(rune('a'+i%26)), 1+i/26) + "n"
		raw := fmt.Sprintf(`[{"%s":"x","token":"y"},{"%[1]s":"x","token":"y"}]`, name)
		if got, _ := r.JSON(json.RawMessage(raw)); strings.Count(string(got), mask.Masked) != 2 {
			t.Errorf("%s: %s", raw, got)
		}
	}
}

// Equal lists share rules; different lists do not.
func TestCompileShares(t *testing.T) {
	list := []string{"swordfish", "key?"}
	first := mask.Compile(list)
	if again := mask.Compile([]string{"swordfish", "key?"}); again != first {
		t.Error("the same list makes other rules")
	}
	list[0] = "pike"
	if got := mask.Compile(list); got == first || !got.Secret("pike") || got.Secret("swordfish") {
		t.Error("another list has the rules of the one before")
	}
	if !first.Secret("swordfish") || first.Secret("pike") {
		t.Error("rules changed with the list of which they were made")
	}
}
