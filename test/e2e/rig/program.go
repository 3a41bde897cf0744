package rig

import (
	"fmt"
)

// ProgGiven returns its argument, so that a test determines what the program returns.
var ProgGiven = Program("\treturn call.Arg(0, \"v\"), nil")

// These are the programs of the movie scenario: one that finds nothing for most wishes, and one written under the
// stronger contract.
var (
	ProgMoviesWeak = Program(
		"\tif call.Arg(0, \"wish\") == \"drama\" {\n\t\treturn map[string]any{\"status\": \"success\", \"movies\": []any{\"B\"}}, nil\n\t}\n\treturn map[string]any{\"status\": \"success_no_parse\", \"movies\": []any{}}, nil")
	ProgMoviesFull = Program(
		"\twish, _ := call.Arg(0, \"wish\").(string)\n\tif wish == \"drama\" {\n\t\treturn map[string]any{\"status\": \"success\", \"movies\": []any{\"B\"}}, nil\n\t}\n\treturn map[string]any{\"status\": \"success\", \"movies\": []any{\"A\", \"B\", wish}}, nil")
)

// MovieContract promises status and movies. Its acceptance is prose, which nothing checks.
var MovieContract = map[string]any{"purpose": "find movies",
	"deliverable": map[string]any{"type": "object", "required": []any{"status", "movies"}},
	"acceptance":  []any{map[string]any{"assert": "the moon is made of cheese"}}}

// ProgHeadlines returns a program that fetches headlines from a Source at that address.
func ProgHeadlines(address string) string {
	return Program("\tres, err := call.Fetch(\""+address+
		"\")\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tif res.Status >= 500 {\n\t\treturn nil, recurgent.Fail(\"upstream\", \"the site is down\")\n\t}\n"+
		"\tvar v struct {\n\t\tItems []struct {\n\t\t\tTitle string `json:\"title\"`\n\t\t} `json:\"items\"`\n\t}\n\tif err := json.Unmarshal([]byte(res.Body), &v); err != nil {\n\t\treturn nil, recurgent.Fail(\"parse_failed\", err.Error())\n\t}\n"+
		"\ttitles := []any{}\n\tfor _, i := range v.Items {\n\t\ttitles = append(titles, i.Title)\n\t}\n\treturn map[string]any{\"status\": \"success\", \"headlines\": titles}, nil", "encoding/json")
}

// Program returns the source of a program with the statements body in Run.
func Program(body string, imports ...string) string {
	lines := ""
	for _, i := range imports {
		lines += fmt.Sprintf("\t%q\n", i)
	}
	return "package tool\n\nimport (\n" + lines +
		"\t\"recurgent\"\n)\n\nfunc Run(call *recurgent.Call) (any, error) {\n" + body + "\n}\n"
}

// These are programs that fail for some arguments, what a model turns them into, and one that fetches.
var (
	ProgMayPanic = Program("\tif call.Arg(0, \"x\") == \"bad\" {\n\t\tpanic(\"boom\")\n\t}\n\treturn call.Arg(0, \"x\"), nil")
	ProgFixes    = Program("\tif call.Arg(0, \"x\") == \"bad\" {\n\t\treturn \"fixed\", nil\n\t}\n\treturn call.Arg(0, \"x\"), nil")
	ProgBreaks   = Program("\tif call.Arg(0, \"x\") == \"bad\" {\n\t\treturn \"fixed\", nil\n\t}\n\treturn \"broken\", nil")
	ProgFetches  = Program("\tr, err := call.Fetch(call.Arg(0, \"url\").(string))\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tif r.Status >= 400 {\n\t\treturn nil, recurgent.Fail(\"fetch_failed\", r.Body)\n\t}\n\tvar v struct{ Items []string }\n\tif err := json.Unmarshal([]byte(r.Body), &v); err != nil || v.Items == nil {\n\t\treturn nil, recurgent.Fail(\"parse_failed\", \"no items\")\n\t}\n\treturn v.Items, nil", "encoding/json")
)

// These are programs for calls that need no special one.
var (
	ProgAdd       = Program("\ta, _ := call.Arg(0, \"a\").(float64)\n\tb, _ := call.Arg(1, \"b\").(float64)\n\treturn a + b, nil")
	ProgIncrement = Program("\tn, ok := call.Arg(0, \"amount\").(float64)\n\tif !ok {\n\t\tn = 1\n\t}\n\tv, _ := call.Context[\"value\"].(float64)\n\tcall.Context[\"value\"] = v + n\n\treturn v + n, nil")
	ProgPanic     = Program("\tpanic(\"boom\")")
	ProgDelegates = Program("\to := call.Tool(\"calculator\").Call(\"add\", 2.0, 3.0)\n\tif !o.OK() {\n\t\treturn nil, recurgent.Fail(o.ErrorType, o.ErrorMessage)\n\t}\n\treturn o.Value, nil")
	ProgEcho      = Program("\treturn map[string]any{\"args\": call.Args, \"kwargs\": call.Kwargs}, nil")
	ProgFails     = Program("\treturn nil, recurgent.Fail(\"not_today\", \"closed on Sundays\")")
)
