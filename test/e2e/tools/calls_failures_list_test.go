package tools

import (
	"net/http"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A labelledFailure is one failure with its label: a program that served once, pinned so that nothing fixes it, and how
// it fails the second time; or a program that the gate does not let in.
type labelledFailure struct {
	name     string
	code     string
	answer   func(http.ResponseWriter) // of the site, when it fails; nil: as when the program served
	contract map[string]any            // deliverable
	timeout  int                       // of the call, in milliseconds
	refused  bool                      // it is never run, nothing is kept
	types    string                    // the error types that it may end in
	class    string                    // intrinsic, adaptive, extrinsic, authored; "" counts for nothing
}

// turns is a program that answers 1 until its argument is "bad", and then goes on with the body.
func turningBad(body string, imports ...string) string {
	return rig.Program("\tif call.Arg(0, \"x\") != \"bad\" {\n\t\treturn 1, nil\n\t}\n"+body, imports...)
}

// reads is a program that fetches, with its argument in the query, and goes on with the body.
func fetchingX(address, body string, imports ...string) string {
	return rig.Program("\tres, err := call.Fetch(\""+address+
		"?x=\" + call.Arg(0, \"x\").(string))\n\tif err != nil {\n\t\treturn nil, err\n\t}\n"+body, imports...)
}

// answers is a program whose value is ok, and bad when it is asked so.
func answers(ok, bad string) string {
	return rig.Program("\tif call.Arg(0, \"x\") == \"bad\" {\n\t\treturn " + bad + ", nil\n\t}\n\treturn " + ok +
		", nil")
}

const (
	parses   = "\tvar v struct{ Items []string }\n\tif err := json.Unmarshal([]byte(res.Body), &v); err != nil || v.Items == nil {\n\t\treturn nil, recurgent.Fail(\"parse_failed\", \"no items\")\n\t}\n\treturn v.Items, nil"
	trusts   = "\tvar v map[string][]string\n\t_ = json.Unmarshal([]byte(res.Body), &v)\n\treturn v[\"items\"][0], nil"
	listens  = "\tif res.Status >= 400 {\n\t\treturn nil, recurgent.Fail(\"fetch_failed\", \"no answer\")\n\t}\n\treturn 1, nil"
	blunders = "\tif res.Status >= 400 {\n\t\tpanic(\"what now\")\n\t}\n\treturn 1, nil"
	breaches = "\tif res.Status >= 400 || !strings.Contains(res.Body, \"items\") {\n\t\treturn \"nothing\", nil\n\t}\n\treturn 1, nil"
)

// labelled is the corpus, with the addresses of a site, of a port where nobody listens and of a host that nobody knows.
func labelled(site, closed, unknown string, hang func(http.ResponseWriter)) []labelledFailure {
	number, object := map[string]any{"type": "number"}, map[string]any{"type": "object", "required": []any{"a"}}
	return []labelledFailure{
		// Programs that the gate does not let in.
		{name: "syntax", code: "package tool\n\nfunc Run(call", refused: true, types: "invalid_code",
			class: "intrinsic"},
		{name: "undefined name", code: rig.Program("\treturn unknown(), nil"), refused: true, types: "invalid_code",
			class: "intrinsic"},
		{name: "type mismatch", code: rig.Program("\tvar n int = \"text\"\n\treturn n, nil"), refused: true,
			types: "invalid_code", class: "intrinsic"},
		{name: "arity of a call", code: rig.Program("\tf := func(a int) int { return a }\n\treturn f(1, 2), nil"),
			refused: true, types: "invalid_code", class: "intrinsic"},
		{name: "results of Run", code: "package tool\n\nfunc Run(a int) (int, int, int) { return a, a, a }\n",
			refused: true, types: "invalid_code", class: "intrinsic"},
		{name: "no Run", code: "package tool\n\nfunc Walk() {}\n", refused: true, types: "invalid_code",
			class: "intrinsic"},
		{name: "two Runs", code: rig.Program("\treturn 1, nil") + "\nfunc Run() {}\n", refused: true,
			types: "invalid_code", class: "intrinsic"},
		{name: "missing return", code: rig.Program("\tcall.Arg(0, \"x\")"), refused: true, types: "invalid_code",
			class: "intrinsic"},
		{name: "init function", code: rig.Program("\treturn 1, nil") + "\nfunc init() {}\n", refused: true,
			types: "invalid_code", class: "intrinsic"},
		{name: "goroutine panic", code: rig.Program("\tgo func() { panic(\"boom\") }()\n\treturn 1, nil"),
			refused: true, types: "invalid_code", class: "intrinsic"},
		{name: "import of os", code: rig.Program("\treturn os.Getpid(), nil", "os"), refused: true,
			types: "guardrail_retry_exhausted", class: "intrinsic"},
		{name: "import of the network",
			code:    rig.Program("\t_, err := net.Dial(\"tcp\", \"localhost:80\")\n\treturn nil, err", "net"),
			refused: true, types: "guardrail_retry_exhausted", class: "intrinsic"},
		{name: "import of unsafe", code: rig.Program("\treturn unsafe.Sizeof(1), nil", "unsafe"), refused: true,
			types: "guardrail_retry_exhausted invalid_code", class: "intrinsic"},
		{name: "another package's variable", code: rig.Program("\tbase64.StdEncoding = nil\n\treturn 1, nil",
			"encoding/base64"), refused: true, types: "guardrail_retry_exhausted", class: "intrinsic"},
		// Programs that end badly by themselves.
		{name: "panic", code: turningBad("\tpanic(\"boom\")"), types: "execution", class: "intrinsic"},
		{name: "panic with an error", code: turningBad("\tpanic(recurgent.Fail(\"not_found\", \"no\"))"),
			types: "execution", class: "intrinsic"},
		{name: "index out of range", code: turningBad("\treturn call.Args[7], nil"), types: "execution",
			class: "intrinsic"},
		{name: "slice out of range", code: turningBad("\tn := 9\n\treturn call.Args[n:], nil"), types: "execution",
			class: "intrinsic"},
		{name: "nil map", code: turningBad("\tvar m map[string]int\n\tm[\"a\"] = 1\n\treturn m, nil"),
			types: "execution", class: "intrinsic"},
		{name: "nil pointer", code: turningBad("\tvar p *struct{ N int }\n\treturn p.N, nil"), types: "execution",
			class: "intrinsic"},
		{name: "type assertion", code: turningBad("\treturn call.Args[0].(float64), nil"), types: "execution",
			class: "intrinsic"},
		{name: "division by zero", code: turningBad("\tn := len(call.Args) - 1\n\treturn 1 / n, nil"),
			types: "execution", class: "intrinsic"},
		{name: "send on a closed channel",
			code: turningBad("\tc := make(chan int, 1)\n\tclose(c)\n\tc <- 1\n\treturn 1, nil"), types: "execution",
			class: "intrinsic"},
		{name: "waits for itself", code: turningBad("\tc := make(chan int)\n\treturn <-c, nil"),
			types: "execution timeout", class: "intrinsic"},
		{name: "endless loop", code: turningBad("\tfor {\n\t}"), types: "timeout", class: "intrinsic"},
		{name: "endless loop, of a caller that sets a time", code: turningBad("\tfor {\n\t}"), timeout: 1500,
			types: "timeout", class: "intrinsic"},
		{name: "endless loop, of a caller in a hurry", code: turningBad("\tfor {\n\t}"), timeout: 300, types: "timeout",
			class: "extrinsic"},
		{name: "stack death", code: turningBad(
			"\tvar f func(int) int\n\tf = func(n int) int { return f(n+1) + 1 }\n\treturn f(0), nil"),
			types: "resource_exhausted timeout", class: "intrinsic"},
		{name: "memory death", code: turningBad(
			"\tvar all [][]byte\n\tfor {\n\t\tb := make([]byte, 1<<20)\n\t\tfor i := 0; i < len(b); i += 4096 {\n\t\t\tb[i] = 1\n\t\t}\n\t\tall = append(all, b)\n\t}"), types: "resource_exhausted timeout", class: "intrinsic"},
		{name: "a value too large for memory",
			code:  turningBad("\tvar b strings.Builder\n\tb.Grow(1 << 42)\n\treturn b.Len(), nil", "strings"),
			types: "resource_exhausted execution", class: "intrinsic"},
		{name: "function as value", code: turningBad("\treturn func() {}, nil"), types: "non_serializable_result",
			class: "intrinsic"},
		{name: "channel as value", code: turningBad("\treturn make(chan int), nil"), types: "non_serializable_result",
			class: "intrinsic"},
		{name: "not a number", code: turningBad("\treturn math.NaN(), nil", "math"), types: "non_serializable_result",
			class: "intrinsic"},
		{name: "infinite", code: turningBad("\treturn math.Inf(1), nil", "math"), types: "non_serializable_result",
			class: "intrinsic"},
		{name: "contains itself", code: turningBad("\tm := map[string]any{}\n\tm[\"m\"] = m\n\treturn m, nil"),
			types: "non_serializable_result", class: "intrinsic"},
		// Values that break the contract.
		{name: "another type", code: answers("1", `"text"`), contract: number, types: "contract_violation",
			class: "intrinsic"},
		{name: "a missing key", code: answers(`map[string]any{"a": 1}`, `map[string]any{"b": 1}`), contract: object,
			types: "contract_violation", class: "intrinsic"},
		{name: "too few items", code: answers(`[]any{1}`, `[]any{}`),
			contract: map[string]any{"type": "array", "min_items": 1}, types: "contract_violation", class: "intrinsic"},
		{name: "a property of another type", code: answers(`map[string]any{"a": []any{}}`, `map[string]any{"a": 1}`),
			types: "contract_violation", class: "intrinsic",
			contract: map[string]any{"type": "object",
				"constraints": map[string]any{"properties": map[string]any{"a": map[string]any{"type": "array"}}}}},
		{name: "a schema's bound", code: answers("1", "-1"), contract: map[string]any{"type": "number", "minimum": 0},
			types: "contract_violation", class: "intrinsic"},
		{name: "null", code: answers("1", "nil"), contract: number, types: "contract_violation", class: "intrinsic"},
		// Errors that programs author, whatever they say.
		{name: "an honest error", code: turningBad("\treturn nil, recurgent.Fail(\"not_today\", \"no\")"),
			types: "not_today", class: "authored"},
		// An error without a type is a failure of the program.
		{name: "a plain error", code: turningBad("\treturn nil, errors.New(\"no\")", "errors"), types: "tool_error",
			class: "intrinsic"},
		{name: "invalid input", code: turningBad("\treturn nil, recurgent.Fail(\"invalid_input\", \"no\")"),
			types: "invalid_input", class: "authored"},
		{name: "low utility", code: turningBad("\treturn nil, recurgent.Fail(\"low_utility\", \"no\")"),
			types: "low_utility", class: "authored"},
		{name: "wrong boundary", code: turningBad("\treturn nil, recurgent.Fail(\"wrong_tool_boundary\", \"no\")"),
			types: "wrong_tool_boundary", class: "authored"},
		{name: "says that it timed out", code: turningBad("\treturn nil, recurgent.Fail(\"timeout\", \"no\")"),
			types: "timeout", class: "authored"},
		{name: "says that the model failed", code: turningBad("\treturn nil, recurgent.Fail(\"provider\", \"no\")"),
			types: "provider", class: "authored"},
		{name: "says that it is extrinsic", code: turningBad("\treturn nil, recurgent.Fail(\"extrinsic\", \"no\")"),
			types: "extrinsic", class: "authored"},
		{name: "parse failed on nothing", code: turningBad("\treturn nil, recurgent.Fail(\"parse_failed\", \"no\")"),
			types: "parse_failed", class: "authored"},
		{name: "parse failed on the form of always", code: fetchingX(site,
			"\tif call.Arg(0, \"x\") == \"bad\" {\n\t\treturn nil, recurgent.Fail(\"parse_failed\", \"no\")\n\t}\n\treturn res.Status, nil"), types: "parse_failed", class: "adaptive"},
		{name: "404, reported honestly", code: fetchingX(site, listens), answer: respondStatus(404),
			types: "fetch_failed", class: "authored"},
		{name: "a denied fetch, passed on",
			code: turningBad("\t_, err := call.Fetch(\"http://127.0.0.1:1/\")\n\treturn nil, err"), types: "denied",
			class: "authored"},
		// External sources fail.
		{name: "dns", code: turningBad("\t_, err := call.Fetch(\"" + unknown + "\")\n\treturn nil, err"),
			types: "fetch_failed", class: "extrinsic"},
		{name: "connection refused", code: turningBad("\t_, err := call.Fetch(\"" + closed + "\")\n\treturn nil, err"),
			types: "fetch_failed", class: "extrinsic"},
		{name: "connection refused, panic over it",
			code: turningBad("\tr, _ := call.Fetch(\"" + closed + "\")\n\treturn r.Body, nil"), types: "execution",
			class: "extrinsic"},
		{name: "429", code: fetchingX(site, listens), answer: respondStatus(429), types: "fetch_failed",
			class: "extrinsic"},
		{name: "500", code: fetchingX(site, listens), answer: respondStatus(500), types: "fetch_failed",
			class: "extrinsic"},
		{name: "502", code: fetchingX(site, listens), answer: respondStatus(502), types: "fetch_failed",
			class: "extrinsic"},
		{name: "503", code: fetchingX(site, listens), answer: respondStatus(503), types: "fetch_failed",
			class: "extrinsic"},
		{name: "504", code: fetchingX(site, listens), answer: respondStatus(504), types: "fetch_failed",
			class: "extrinsic"},
		{name: "503, panic over it", code: fetchingX(site, blunders), answer: respondStatus(503), types: "execution",
			class: "extrinsic"},
		{name: "503, contract broken over it", code: fetchingX(site, breaches, "strings"), answer: respondStatus(503),
			contract: number, types: "contract_violation", class: "extrinsic"},
		{name: "503, parse failed over it", code: fetchingX(site, parses, "encoding/json"), answer: respondStatus(503),
			types: "parse_failed", class: "extrinsic"},
		{name: "an answer cut off", code: fetchingX(site, listens), answer: cutOff, types: "fetch_failed",
			class: "extrinsic"},
		{name: "the deadline while waiting for a fetch", code: fetchingX(site, listens), answer: hang, timeout: 2000,
			types: "timeout", class: "extrinsic"},
		// External responses changed shape.
		{name: "format drift, parse failed", code: fetchingX(site, parses, "encoding/json"),
			answer: respondBody(`{"entries":["a"]}`), types: "parse_failed", class: "adaptive"},
		{name: "format drift to a page", code: fetchingX(site, parses, "encoding/json"), answer: respondBody("<html>"),
			types: "parse_failed", class: "adaptive"},
		{name: "format drift, panic", code: fetchingX(site, trusts, "encoding/json"),
			answer: respondBody(`{"entries":["a"]}`), types: "execution", class: "adaptive"},
		{name: "format drift, contract broken", code: fetchingX(site, breaches, "strings"),
			answer: respondBody(`{"entries":["a"]}`), contract: number, types: "contract_violation", class: "adaptive"},
		{name: "panic on the form of always", code: fetchingX(site,
			"\tif call.Arg(0, \"x\") == \"bad\" {\n\t\tpanic(\"boom\")\n\t}\n\treturn res.Status, nil"),
			types: "execution", class: "intrinsic"},
		{name: "404, panic over it", code: fetchingX(site, blunders), answer: respondStatus(404), types: "execution",
			class: "intrinsic"},
		{name: "a delegated value has another form",
			code: rig.Program("\tv := call.Tool(\"helper\").Call(\"list\", call.Arg(0, \"x\")).Value\n\treturn v.([]any)[0], nil"), types: "execution", class: "adaptive"},
	}
}
