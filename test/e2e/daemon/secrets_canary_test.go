package daemon

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// everywhere puts the whole input into the address, a header of its own, the credentials and the body of a request, and
// into its errors.
func everywhere(api, read string) string {
	return rig.Program(`	raw, _ := json.Marshal([]any{call.Arg(0, "user"), call.Arg(1, "password"), call.Args, call.Kwargs})
	text := string(raw)
	if call.Kwargs["mode"] == "author" {
		return nil, recurgent.Fail("not_today", "cannot use "+text)
	}
	pw, _ := call.Arg(1, "password").(string)
	r, err := call.FetchWith(recurgent.Request{URL: "`+api+`/x/" + url.PathEscape(pw) + "?q=" + url.QueryEscape(text), Body: "note=" + text,
		Header: map[string]string{"X-Odd": hex.EncodeToString([]byte(text)), "Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte("user:" + pw))}})
	if err != nil {
		return nil, err
	}
	if call.Kwargs["mode"] == "fail" {
		panic("cannot read " + text + r.Body)
	}
	var m map[string]any
	if err := json.Unmarshal([]byte(r.Body), &m); err != nil {
		return nil, recurgent.Fail("parse_failed", err.Error()+r.Body)
	}
	call.Tool("helper").Call("keep", text)
`+read, "encoding/base64", "encoding/hex", "encoding/json", "net/url")
}

const (
	readBefore = "\treturn m[\"items\"].(float64), nil"
	readAfter  = "\tdata, _ := m[\"data\"].(map[string]any)\n\tif n, ok := data[\"items\"].(float64); ok {\n\t\treturn n, nil\n\t}\n\treturn m[\"items\"], nil"
)

// A secret at any place of the input is neither stored, logged, shown nor sent to the model, whatever the program does
// with it: it fetches, fails, is repaired, calls other tools. The server and the caller get the true value.
func TestNoSecretLeaves(t *testing.T) {
	t.Parallel()
	a := newEchoAPI(t)
	m := rig.NewModel(t, rig.Script{"shop.use": {everywhere(a.URL, readBefore), everywhere(a.URL, readAfter)},
		"helper.keep": {rig.Program("\treturn len(call.Args), nil")}})
	d := rig.Start(t, m, "--fetch-allow", a.host())
	s := d.Session("shop", object{"debug": true})
	// from here on the parameters are known
	d.WantValue(d.Invoke(s, object{"method": "use", "args": []any{"bob", ""}}), 3, "generated")

	secrets := map[string]string{}
	secret := func(place string) string {
		secrets[place] = letterCanary(place)
		return secrets[place]
	}
	pem := "-----BEGIN PRIVATE KEY-----\n" + secret("pem") + "\n" + strings.Repeat("A", 60) +
		"\n-----END PRIVATE KEY-----\n"
	inputs := []object{
		{"args": []any{"bob", secret("positional")}},
		{"kwargs": object{"user": "bob", "api_key": secret("keyword")}},
		{"kwargs": object{"options": object{"deep": []any{object{"X-Api-Key": secret("nested")}}}}},
		{"kwargs": object{"credentials": []any{secret("list"), object{"n": secret("inlist")}}}},
		{"args": []any{object{"client_secret": secret("member")}}},
		{"args": []any{"https://example.org/x?access_token=" + secret("query") + "&page=2"}},
		{"kwargs": object{"link": "https://bob:" + secret("userinfo") + "@example.org/"}},
		{"kwargs": object{"link": "https://example.org/?next=https%3A%2F%2Fexample.com%2F%3Fsecret%3D" +
			secret("inner")}},
		{"args": []any{"curl -H 'Authorization: Bearer " + secret("header") + "' https://example.org"}},
		{"args": []any{"X-Auth-Token: " + secret("line") + "\nAccept: */*"}},
		{"args": []any{"Cookie: sid=" + secret("cookie") + "; theme=dark"}},
		{"kwargs": object{"text": "before\n" + pem + "after"}},
		{"kwargs": object{"dsn": "host=db user=bob password=" + secret("dsn") + " dbname=x"}},
		{"kwargs": object{"body": `{"passwd": "` + secret("json") + `"}`}},
		{"args": []any{"bob", secret("again")}, "kwargs": object{"mode": "author"}},
		{"kwargs": object{"bearer": secret("bearer")}, "history": object{"messages": []any{}}},
	}
	for i, input := range inputs {
		input["method"] = "use"
		got := d.Invoke(s, input)
		kwargs, _ := input["kwargs"].(object)
		if mode, _ := kwargs["mode"].(string); mode == "" && !got.Outcome.OK {
			t.Errorf("input %d: %+v", i, got.Outcome)
		} else if mode == "author" && !strings.Contains(got.Outcome.ErrorMessage, secrets["again"]) {
			t.Errorf("the caller does not get its own value: %q", got.Outcome.ErrorMessage)
		}
		if i == 0 && !strings.Contains(fmt.Sprint(a.asked.Load()), secrets["positional"]) {
			t.Errorf("the server got %s", a.asked.Load())
		}
	}
	d.Invoke(s, object{"method": "token=", "args": []any{secret("setter")}})
	delete(secrets, "setter") // the context is the programs' memory; the records have only the mask, see below
	a.moved.Store(true)
	d.WantValue(d.Invoke(s, object{"method": "use", "args": []any{"bob", secret("drift")}}), 3, "repaired")
	d.Do(http.StatusOK, http.MethodPost, rig.MethodPath("shop", "use")+"/regenerate",
		object{"reason": "use https://example.org/?api_key=" + secret("reason")})
	d.Invoke(s, object{"method": "use", "args": []any{"bob", secret("regenerated")}})
	d.Invoke(s, object{"method": "use", "kwargs": object{"token": secret("failing"), "mode": "fail"}})

	setter := d.List("/v1/calls")
	if text := string(rig.MustJSON(setter)); !strings.Contains(text, `"[masked]"`) ||
		strings.Contains(text, canaryPrefix+"setter") {
		t.Error("the log does not mask what a setter with the name of a secret was given")
	}
	absent(t, everything(d, m, s), secrets)
}

const canaryPrefix = "cnry"

// Before its first program a method has no parameters: the model sees a secret that stands by position and has no form
// of one. What is stored has it masked, since the program's parameters are known then, in debug sessions too.
func TestFirstForgeStoresNoSecret(t *testing.T) {
	t.Parallel()
	a := newEchoAPI(t)
	m := rig.NewModel(t, rig.Script{"shop.use": {everywhere(a.URL, readBefore)},
		"helper.keep": {rig.Program("\treturn len(call.Args), nil")}})
	d := rig.Start(t, m, "--fetch-allow", a.host())
	s := d.Session("shop", object{"debug": true})
	secret := letterCanary("first")
	d.WantValue(d.Call(s, "use", "bob", secret), 3, "generated")
	all := everything(d, m, s)
	for place := range all {
		if strings.HasPrefix(place, "request ") {
			delete(all, place)
		}
	}
	absent(t, all, map[string]string{"first": secret})
}
