package daemon

import (
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// balance asks for the balance of an account: the password is in the path, in the query and in the credentials.
func balance(api, then string) string {
	return rig.Program(`	user, _ := call.Arg(0, "user").(string)
	password, _ := call.Arg(1, "password").(string)
	q := url.Values{"user": {user}, "password": {password}}
	r, err := call.FetchWith(recurgent.Request{URL: "`+api+`/" + password + "/balance?" + q.Encode(),
		Header: map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(user + ":" + password))}})
	if err != nil {
		return nil, err
	}
	var m struct{ Items float64 }
	if err := json.Unmarshal([]byte(r.Body), &m); err != nil {
		return nil, recurgent.Fail("parse_failed", "no items")
	}
`+then, "encoding/base64", "encoding/json", "net/url")
}

// A call with a secret leaves a proof: its effects are replayed with the mask in the secret's place. A repaired program
// has to reproduce it.
func TestMaskedCallsAreProof(t *testing.T) {
	t.Parallel()
	a := newEchoAPI(t)
	m := rig.NewModel(t, rig.Script{"bank.balance": {balance(a.URL,
		"\tif user == \"eve\" {\n\t\tpanic(\"no eve\")\n\t}\n\treturn m.Items, nil"),
		balance(a.URL, "\treturn m.Items + 1, nil"), balance(a.URL, "\treturn m.Items, nil")}})
	d := rig.Start(t, m, "--fetch-allow", a.host())
	s := d.Session("bank")
	secret := letterCanary("proof")
	d.WantValue(d.Call(s, "balance", "bob", secret), 3, "generated")
	fixtures := func() string { return string(rig.MustJSON(d.Get(rig.MethodPath("bank", "balance") + "/fixtures"))) }
	if got := fixtures(); !strings.Contains(got, `"[masked]"`) || strings.Contains(got, secret) {
		t.Fatalf("the masked call made no fixture: %s", got)
	}
	d.WantValue(d.Call(s, "balance", "eve", secret), 3, "generated")
	if n := m.Count("bank", "balance"); n != 3 {
		t.Errorf("%d requests, want 3: the first repair breaks the proof", n)
	}
	if q := m.LastQuestion().User; !strings.Contains(q, "it broke an earlier call that was right") ||
		!strings.Contains(q, "[masked]") {
		t.Errorf("the second repair is not shown the broken proof:\n%s", q)
	}
	if got := fixtures(); strings.Count(got, `"call_id"`) < 2 {
		t.Errorf("the repaired program lost its proof: %s", got)
	}
	d.Restart()
	d.WantValue(d.Call(s, "balance", "bob", secret), 3, "persisted")
	all := everything(d, m, s)
	delete(all, request(0, "bank", "balance")) // the first one, before the method had parameters
	absent(t, all, map[string]string{"proof": secret})
}

// Where the mask leads to another answer, there is no proof: a value that depends on the secret itself.
func TestIrreproducibleCallsAreNoProof(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"bank.length": {rig.Program(
		"\ts, _ := call.Arg(0, \"password\").(string)\n\treturn len(s), nil")}})
	d := rig.Start(t, m)
	s := d.Session("bank")
	for range 2 {
		if got := d.Call(s, "length", letterCanary("long")); !got.Outcome.OK {
			t.Fatalf("%+v", got.Outcome)
		}
	}
	if got := string(rig.MustJSON(d.Get(rig.MethodPath("bank", "length") +
		"/fixtures"))); strings.Contains(got, `"call_id"`) {
		t.Errorf("a value that depends on the secret became a proof: %s", got)
	}
}
