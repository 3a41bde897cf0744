package daemon

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Several people share the tools of a namespace, and a model repairs, writes anew and corrects them with what each of
// them does. Whatever the history, no request to the model that is made for one of them has a word of what came with
// another's calls (arguments, names of keywords and members, answers, pages, contexts, errors, notes), nor the id of
// such a call; and nothing that one who may not operate can read has.
func TestPromptsHoldNothingOfOthers(t *testing.T) {
	seed, steps := uint64(4711), 20
	if !testing.Short() {
		steps = 400
	}
	if s, err := strconv.ParseUint(os.Getenv("PROMPTS_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("PROMPTS_SEED=%d", seed)
	c := newCommons(t, seed)
	ann, ben := c.people[0], c.people[1]
	for _, x := range []struct {
		p    *citizen
		does func(*citizen)
	}{{ann, c.answers}, {ben, c.answers}, {ben, c.crashes}, {ann, c.answersAlone}, {ann, c.crashesAlone},
		{ann, c.reads}, {ben, c.readsAnew}, {ann, c.readsAnew}, {ben, c.readsAnew},
		{ann, c.names}, {ann, c.misnames}, {ben, c.misnames}, {ann, c.getsLittle}, {ben, c.wantsAnother("weak")},
		{ben, c.getsLittle}, {ben, c.wantsAnother("weak")},
		{ann, c.answers}, {ann, c.isWronged("manual", false)}, {ben, c.wantsAnother("echo")}, {ben, c.answers},
		{ben, c.isWronged("background", true)}, {ann, c.wantsAnother("echo")},
		{ann, c.answers}, {ann, c.isWronged("next_call", false)}, {ben, c.answers}, {ann, c.converses},
		{ann, c.converses}, {ben, c.thinks}, {ben, c.delegates}} {
		c.does(x.p, x.does)
	}
	c.read()
	all := []func(*citizen){c.answers, c.crashes, c.crashesByName, c.reads, c.readsAnew, c.names, c.misnames, c.refuses,
		c.getsLittle, c.remembers, c.fails, c.converses, c.thinks, c.delegates, c.startsAnew,
		c.isWronged("background", true), c.isWronged("background", false), c.isWronged("manual", true),
		c.isWronged("next_call", false), c.wantsAnother("echo"), c.wantsAnother("page"), c.wantsAnother("crash")}
	for i := range steps {
		c.does(c.people[c.rand.IntN(len(c.people))], all[c.rand.IntN(len(all))])
		if i%20 == 19 || i == steps-1 {
			c.read()
		}
	}
	for kind, is := range c.kinds() {
		if !is {
			t.Errorf("no history had this: %s", kind)
		}
	}
}

// commons is a daemon that several people use, and what is known of whose words are whose.
type commons struct {
	t       *testing.T
	rand    *rand.Rand
	m       *rig.Model
	site    *httptest.Server
	eve     *rig.Daemon // who may operate
	people  []*citizen
	seen    int            // requests to the model that were looked at
	judged  int            // the programs that the model writes refuse so many answers; guarded by mu
	written map[string]int // by method: how often the model wrote it; guarded by mu

	mu     sync.Mutex
	serves *citizen // whose request is under way; guarded by mu
	shape  int      // of the site's pages; guarded by mu
	asks   []asked  // guarded by mu
}

// An asked is a request to the model, and for whom it was made.
type asked struct {
	of   *citizen
	text string
}

// A citizen is one of the people, with the words that are hers alone.
type citizen struct {
	name    string
	d       *rig.Daemon
	session string
	words   map[string]bool // that nobody has made public
	ids     []string        // of her calls and sessions
	n       int
	calls   []rig.Reply
}

// word is a new word of hers: a name, a text, a part of an address and a type of an error alike.
func (p *citizen) word() string {
	p.n++
	w := fmt.Sprintf("cn%sx%04d", p.name, p.n)
	p.words[w] = true
	return w
}

func newCommons(t *testing.T, seed uint64) *commons {
	t.Helper()
	c := &commons{t: t, rand: rand.New(rand.NewPCG(seed, 1)), m: rig.NewModel(t, nil),
		written: map[string]int{}}
	c.site = httptest.NewServer(http.HandlerFunc(c.page))
	t.Cleanup(c.site.Close)
	c.m.Default(c.model)
	d := rig.Start(t, c.m, "--fetch-allow", strings.TrimPrefix(c.site.URL, "http://"), "--auth-tokens-file",
		rig.WriteFile(t, "tokens",
			"eve token-of-eve-0001\nann token-of-ann-0002 scopes=read,call\nben token-of-ben-0003 scopes=read,call\ncal token-of-cal-0004 scopes=read,call\n")).One()
	c.eve = d.As("token-of-eve-0001")
	c.eve.Policy(object{"backoff": object{"base_seconds": 0}, "max_repairs_before_regen": 2,
		"recommendations": object{"min_evidence": 1, "weak_rate": 0.1, "corrections": 1}})
	for i, name := range []string{"ann", "ben", "cal"} {
		p := &citizen{name: name, d: d.As(fmt.Sprintf("token-of-%s-000%d", name, i+2)), words: map[string]bool{}}
		p.session = p.d.Session("shop", map[string]any{"debug": true, "metadata": map[string]any{"m": p.word()}})
		p.ids = append(p.ids, p.session)
		c.people = append(c.people, p)
	}
	return c
}

// page answers with a page that is of who asks for it: its members and values are her words. Its shape changes.
func (c *commons) page(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	word := r.URL.Query().Get("w")
	fmt.Fprintf(w, `{"items%d": ["of %s"], "m%s": {"k%s": 1}, "note": "page of %s"}`, c.shape, word, word, word, word)
}

// model writes the next program of a method. Programs hold no word of anybody.
func (c *commons) model(q openaitest.Request) openaitest.Reply {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asks = append(c.asks, asked{c.serves, q.Text})
	if q.Method == "" {
		return openaitest.Reply{Content: "Answer: of the model"} // a program asks
	}
	c.written[q.Role+"."+q.Method]++
	n := c.written[q.Role+"."+q.Method]
	switch q.Method {
	case "echo":
		body := "\tv := call.Arg(0, \"v\")\n\tif m, ok := v.(map[string]any); ok {\n\t\tif n, ok := m[\"wrong\"].(float64); ok && n <= " + fmt.Sprint(c.judged) + ".0 {\n\t\t\treturn nil, recurgent.Fail(\"not_this\", fmt.Sprint(m))\n\t\t}\n\t}\n\tif m, ok := v.(map[string]any); ok && m[\"boom\"] == " + fmt.Sprint(n) + ".0 {\n\t\tpanic(fmt.Sprint(m))\n\t}\n\tif call.Kwargs[\"boom\"] == " + fmt.Sprint(n) + ".0 {\n\t\treturn nil, fmt.Errorf(\"no %v\", call.Kwargs)\n\t}\n"
		if n%2 == 0 && strings.Contains(q.Text, "<failed_code>") { // it breaks what was answered before
			return openaitest.Code(rig.Program(
				"\tif call.Arg(0, \"v\") == nil {\n\t\tpanic(fmt.Sprint(call.Kwargs))\n\t}\n\treturn map[string]any{\"other\": call.Arg(0, \"v\")}, nil", "fmt"))
		}
		return openaitest.Code(rig.Program(body+"\treturn map[string]any{\"got\": v, \"kwargs\": call.Kwargs}, nil",
			"fmt"))
	case "page":
		return openaitest.Code(rig.Program(
			"\tr, err := call.Fetch(fmt.Sprint(call.Arg(0, \"url\")))\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tvar v map[string]any\n\tif err := json.Unmarshal([]byte(r.Body), &v); err != nil || v[\"items"+fmt.Sprint(c.shape)+"\"] == nil {\n\t\treturn nil, recurgent.Fail(\"parse_failed\", \"no items in \"+r.Body)\n\t}\n\treturn v[\"items"+fmt.Sprint(c.shape)+"\"], nil", "encoding/json", "fmt"))
	case "strict":
		return openaitest.Code(rig.Program(
			"\ta := call.Kwargs[\"a\"]\n\tif a == nil {\n\t\treturn nil, recurgent.Fail(\"invalid_input\", \"a is missing\")\n\t}\n\treturn a, nil"))
	case "refuse":
		return openaitest.Code(rig.Program(
			"\treturn nil, recurgent.Fail(\"t\"+strings.ToLower(fmt.Sprint(call.Arg(0, \"v\"))), fmt.Sprint(\"not \", call.Arg(0, \"v\")))", "fmt", "strings"))
	case "weak":
		return openaitest.Code(rig.Program(
			"\treturn map[string]any{\"status\": \"success\", fmt.Sprint(call.Arg(0, \"v\")): []any{}, \"words\": call.Arg(0, \"v\")}, nil", "fmt"))
	case "note":
		return openaitest.Code(rig.Program(
			"\tk := fmt.Sprint(call.Arg(0, \"v\"))\n\tcall.Context[k] = map[string]any{k: k}\n\tif call.Context[\"boom\"] != nil {\n\t\tpanic(fmt.Sprint(call.Context))\n\t}\n\treturn len(call.Context), nil", "fmt"))
	case "crash":
		return openaitest.Code(rig.Program("\tpanic(fmt.Sprint(call.Args, \" try "+fmt.Sprint(n)+"\"))", "fmt"))
	case "think":
		return openaitest.Code(rig.Program("\treturn call.Ask(\"about\", call.Arg(0, \"v\"))"))
	case "total":
		return openaitest.Code(rig.Program(
			"\to := call.Tool(\"shop\").Call(\"echo\", call.Arg(0, \"v\"))\n\tif !o.OK() {\n\t\treturn nil, recurgent.Fail(o.ErrorType, o.ErrorMessage)\n\t}\n\treturn o.Value, nil"))
	}
	return openaitest.Code(rig.Program("\treturn map[string]any{\"n\": " + fmt.Sprint(n) +
		", \"v\": call.Arg(0, \"v\")}, nil"))
}

// serve has what follows be of that person.
func (c *commons) serve(p *citizen) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serves = p
}

// does has her do something, and looks at what the model was asked meanwhile.
func (c *commons) does(p *citizen, something func(*citizen)) {
	c.t.Helper()
	c.serve(p)
	something(p)
	c.asked()
}

// value is an object of her words.
func (p *citizen) value() object { return object{"text": p.word(), p.word(): []any{p.word()}} }

// trigger is what the newest program of the method fails for.
func (c *commons) trigger(method string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.written[method]
}

func (c *commons) answers(p *citizen) { c.call(p, object{"method": "echo", "args": []any{p.value()}}) }

func (c *commons) crashes(p *citizen) {
	v := p.value()
	v["boom"] = c.trigger("shop.echo")
	c.call(p, object{"method": "echo", "args": []any{v}})
}

func (c *commons) crashesByName(p *citizen) {
	c.call(p, object{"method": "echo", "args": []any{p.word()},
		"kwargs": object{p.word(): p.word(), "boom": c.trigger("shop.echo")}})
}

func (c *commons) answersAlone(p *citizen) {
	c.call(p, object{"role": "solo" + p.name, "method": "echo", "args": []any{p.value()}})
}

func (c *commons) crashesAlone(p *citizen) {
	v := p.value()
	v["boom"] = c.trigger("solo" + p.name + ".echo")
	c.call(p, object{"role": "solo" + p.name, "method": "echo", "args": []any{v}})
}

func (c *commons) reads(p *citizen) {
	c.call(p, object{"method": "page", "args": []any{c.site.URL + "/list?w=" + p.word()}})
}

// readsAnew reads after the site's pages have changed.
func (c *commons) readsAnew(p *citizen) {
	c.mu.Lock()
	c.shape++
	c.mu.Unlock()
	c.reads(p)
}

func (c *commons) names(p *citizen) {
	c.call(p, object{"method": "strict", "kwargs": object{"a": p.word()}})
}

func (c *commons) misnames(p *citizen) {
	c.call(p, object{"method": "strict", "kwargs": object{p.word(): p.word()}})
}

func (c *commons) refuses(p *citizen) { c.call(p, object{"method": "refuse", "args": []any{p.word()}}) }

// getsLittle asks again, since the answer achieved little.
func (c *commons) getsLittle(p *citizen) {
	w := p.word()
	for range 2 {
		c.call(p, object{"method": "weak", "args": []any{w}})
	}
}

func (c *commons) remembers(p *citizen) {
	p.d.Do(http.StatusOK, http.MethodPatch, "/v1/sessions/"+p.session+"/context",
		object{p.word(): object{p.word(): p.word()}, "boom": []any{nil, 1}[c.rand.IntN(2)]})
	c.call(p, object{"method": "note", "args": []any{p.word()}})
}

func (c *commons) fails(p *citizen) { c.call(p, object{"method": "crash", "args": []any{p.word()}}) }

func (c *commons) converses(p *citizen) { c.call(p, object{"method": "ask", "args": []any{p.word()}}) }

func (c *commons) thinks(p *citizen) { c.call(p, object{"method": "think", "args": []any{p.word()}}) }

func (c *commons) delegates(p *citizen) {
	c.call(p, object{"role": "boss", "method": "total", "args": []any{p.value()}})
}

// startsAnew calls what nobody has called before, with a history of hers.
func (c *commons) startsAnew(p *citizen) {
	c.call(p, object{"role": fmt.Sprint("fresh", p.n), "method": "do", "args": []any{p.word()},
		"history": object{"messages": []any{object{"question": p.word(), "answer": p.word()}}}})
}

// wantsAnother has eve ask for another program of the method, which she then calls.
func (c *commons) wantsAnother(method string) func(*citizen) {
	return func(p *citizen) {
		r := c.eve.Send(http.MethodPost, rig.MethodPath("shop", method)+"/regenerate",
			[]byte(`{"reason": "a person wants another"}`), nil)
		switch {
		case r.Status != http.StatusOK: // there is none yet
		case method == "weak":
			c.getsLittle(p)
		case method == "page":
			c.reads(p)
		default:
			c.call(p, object{"method": method, "args": []any{p.value()}})
		}
	}
}

// call makes a call of hers, and looks at the reply.
func (c *commons) call(p *citizen, body object) (got rig.Reply) {
	r := p.d.Send(http.MethodPost, "/v1/sessions/"+p.session+"/calls", rig.Encode(c.t, body), nil)
	if r.Status != http.StatusOK {
		c.t.Fatalf("%v: %d %s", body, r.Status, r.Body)
	}
	c.alien(p, fmt.Sprint("the reply to ", body["method"]), string(r.Body)+fmt.Sprint(r.Header))
	r.Into(c.t, &got)
	p.calls = append(p.calls, got)
	p.ids = append(p.ids, got.CallID)
	return got
}

// isWronged has eve judge an answer of hers wrong, with or without saying what is right: that is everybody's from then
// on, with its input.
func (c *commons) isWronged(correction string, expected bool) func(*citizen) {
	return func(p *citizen) {
		v := p.value()
		v["wrong"] = c.judged + 1
		of := c.call(p, object{"method": "echo", "args": []any{v}})
		if !of.Outcome.OK {
			return // an earlier program has its member, or a person is awaited
		}
		verdict := object{"verdict": "wrong", "note": "wrong, says " + p.word()}
		if expected {
			verdict["expected_error_type"] = "not_this"
			p.publish(string(rig.Encode(c.t, []any{v, verdict["note"]})))
		}
		c.mu.Lock()
		c.judged++
		c.mu.Unlock()
		c.eve.Policy(object{"correction": correction})
		r := c.eve.Send(http.MethodPost, "/v1/calls/"+of.CallID+"/verdict", rig.Encode(c.t, verdict),
			map[string]string{"Prefer": "wait=60"})
		if r.Status != http.StatusOK || correction == "background" &&
			!strings.Contains(string(r.Body), `"state":"adopted"`) {
			c.t.Errorf("the verdict: %d %s", r.Status, r.Body)
		}
	}
}

// publish takes the words of the text for everybody's.
func (p *citizen) publish(text string) {
	maps.DeleteFunc(p.words, func(w string, _ bool) bool { return strings.Contains(text, w) })
}

// alien looks for what is of others in a text that is for her.
func (c *commons) alien(p *citizen, what, text string) {
	c.t.Helper()
	for _, at := range theirWord.FindAllStringSubmatchIndex(text, -1) {
		word, name := text[at[0]:at[1]], text[at[2]:at[3]]
		i := slices.IndexFunc(c.people, func(o *citizen) bool { return o.name == name })
		if name != p.name && c.people[i].words[word] {
			c.t.Fatalf("%s, for %s, has %s: ...%s", what, p.name, word,
				text[max(0, at[0]-300):min(len(text), at[0]+100)])
		}
	}
	for _, other := range c.people {
		for _, id := range other.ids {
			if at := strings.Index(text, id); at >= 0 && other != p {
				c.t.Fatalf("%s, for %s, has the id %s of %s: ...%s", what, p.name, id, other.name,
					text[max(0, at-300):min(len(text), at+100)])
			}
		}
	}
}

var theirWord = regexp.MustCompile(`cn(ann|ben|cal)x[0-9]{4}`)

// asked looks at the requests to the model since the last look.
func (c *commons) asked() {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.asks[c.seen:] {
		c.alien(a.of, "a request to the model", a.text)
	}
	c.seen = len(c.asks)
}

// read looks at all that the people can read.
func (c *commons) read() {
	c.t.Helper()
	for _, p := range c.people {
		paths := []string{"/v1/tools", "/v1/tools/shop", "/v1/tools/shop/methods", "/v1/inbox", "/v1/recommendations",
			"/v1/recommendations?status=applied", "/v1/patterns/shop", "/v1/reports/history-usage",
			"/v1/reports/trends",
			"/v1/calls?limit=100", "/v1/sessions", "/v1/usage", "/v1/usage?by=owner", "/v1/functions", "/v1/policy",
			"/v1/sessions/" + p.session + "/history?limit=100", "/v1/sessions/" + p.session + "/context"}
		for _, m := range []string{"echo", "page", "strict", "refuse", "weak", "note", "crash", "think"} {
			for _, of := range []string{"", "/generations", "/examples", "/effects"} {
				paths = append(paths, rig.MethodPath("shop", m)+of)
			}
		}
		for _, r := range p.calls[max(0, len(p.calls)-6):] {
			paths = append(paths, "/v1/calls/"+r.CallID, "/v1/calls/"+r.CallID+"/why", "/v1/calls/"+r.CallID+"/events")
		}
		for _, path := range paths {
			r := p.d.Send(http.MethodGet, path, nil, nil)
			c.alien(p, path, string(r.Body))
		}
	}
}

// kinds returns the kinds of requests to the model that were made.
func (c *commons) kinds() map[string]bool {
	all := map[string]bool{}
	has := func(kind string, of func(p *citizen, text string) bool) {
		all[kind] = slices.ContainsFunc(c.asks, func(a asked) bool { return of(a.of, a.text) })
	}
	says := func(texts ...string) func(*citizen, string) bool {
		return func(_ *citizen, text string) bool {
			return !slices.ContainsFunc(texts, func(t string) bool { return !strings.Contains(text, t) })
		}
	}
	has("a first program, with known tools", says("Write the program of the method below.", "<known_tools>"))
	has("a repair", says("Repair the program of the method below."))
	has("a regeneration", says("Write the program of the method below anew"))
	has("a correction", says("A person judged an answer of this program to be wrong."))
	has("a regeneration that a person asked for", says("<operator_reason>a person wants another</operator_reason>"))
	has("an answer of another's that a program changed", says("for an input of the form ", "now it is another"))
	has("an answer of one's own that a program changed", says("the answer was {", "now it is {"))
	has("a failure of another's", says("an earlier failure ended in execution\n"))
	has("a page of another's", says("after 1 responses from outside"))
	has("a page of one's own", func(p *citizen, text string) bool {
		return strings.Contains(text, "the response begins: ") && strings.Contains(text, "page of cn"+p.name)
	})
	has("a shape of another's page", says("at the last good run it was another, in a call of somebody else"))
	has("keywords of another's", says("it had keywords that the program does not read, "))
	has("a weak answer to another", says("a weak answer (empty_array:/*) to an input of the form "))
	has("a weak answer to oneself", says("a weak answer (empty_array:/cn"))
	has("a verdict of another's", says("a person called an answer wrong: an input of the form "))
	has("an example", says("<examples>"))
	has("turns of one's own", says("<earlier_turns>"))
	has("a question of a program's", says("about"))
	return all
}
