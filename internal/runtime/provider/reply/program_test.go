package reply_test

import (
	"encoding/json"
	"strings"
	"testing"

	openai "github.com/sashabaranov/go-openai"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/reply"
)

// good is a program with everything that call formats stumble over: quotes, backslashes, line breaks, fences, marks and
// tags in its strings.
const good = "package tool\n\nimport (\n\t\"strings\"\n\n\t\"recurgent\"\n)\n\n// Run says </think> and\n// ```go\n// so.\n// ```\nfunc Run(call *recurgent.Call) (any, error) {\n\ts, _ := call.Arg(0, \"s\").(string)\n\tif s == \"</think>\\n\\t\\\"<parameter=code>\" || 1 < 2 && s != `\\d+ [/THINK]` {\n\t\ts = strings.ReplaceAll(s, \"</parameter>\", '\\''+\"é😀\")\n\t}\n\treturn map[string]any{\"s\": s}, nil\n}\n"

// plain is a program without any of that.
const plain = "package tool\n\nimport \"recurgent\"\n\nfunc Run(call *recurgent.Call) (any, error) {\n\ta, _ := call.Arg(0, \"a\").(float64)\n\treturn a + 1, nil\n}\n"

// draft is another whole program.
var draft = strings.Replace(plain, "a + 1", "a - 1", 1)

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func args(code string) string { return `{"code": ` + quote(code) + `, "summary": "adds"}` }

// A writer writes a program as a model does.
type writer struct {
	name  string
	form  reply.Form
	write func(code string) string
	exact bool // it can represent any program
}

func fence(tag string) func(string) string {
	return func(code string) string { return "Here it is:\n\n```" + tag + "\n" + code + "```\n\nIt works." }
}

func around(before, after string) func(string) string {
	return func(code string) string { return before + args(code) + after }
}

func named(key, before, after string) func(string) string {
	return func(code string) string {
		return before + `{"name": "submit_program", "` + key + `": ` + args(code) + `}` + after
	}
}

// python writes a string as Python does.
func python(s, q string) string {
	s = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\t", `\t`, q, `\`+q).Replace(s)
	return q + s + q
}

var writers = []writer{
	{"fence", reply.FormFence, fence("go"), true},
	{"fence without a tag", reply.FormFence, fence(""), true},
	{"fence with another tag", reply.FormFence, fence("golang title=\"tool.go\""), true},
	{"fence of tildes", reply.FormFence, func(code string) string { return "~~~go\n" + code + "~~~" }, true},
	{"longer fence", reply.FormFence, func(code string) string { return "````go\n" + code + "````" }, true},
	{"fence that never ends", reply.FormFence, func(code string) string { return "```go\n" + code }, true},
	{"fence in a list", reply.FormFence, func(code string) string {
		return "1. The program:\n\n   ```go\n   " + strings.ReplaceAll(strings.TrimSuffix(code, "\n"), "\n", "\n   ") +
			"\n   ```\n"
	}, true},
	{"object", reply.FormTextCall, around("", ""), true},
	{"object in a fence", reply.FormTextCall, around("```json\n", "\n```"), true},
	{"object in prose", reply.FormTextCall, around("I call it with ", " now."), true},
	{"call as an object", reply.FormTextCall, named("arguments", "", ""), true},
	{"call as an object with parameters", reply.FormTextCall, named("parameters", "", ""), true},
	{"arguments as a text", reply.FormTextCall, func(code string) string {
		return `{"name": "submit_program", "arguments": ` + quote(args(code)) + `}`
	}, true},
	{"OpenAI's tool_calls", reply.FormTextCall, func(code string) string {
		return `{"tool_calls": [{"id": "c", "type": "function", "function": {"name": "submit_program", "arguments": ` +
			quote(args(code)) + `}}]}`
	}, true},
	{"Hermes", reply.FormTextCall, named("arguments", "<tool_call>\n", "\n</tool_call>"), true},
	{"Hermes without its end", reply.FormTextCall, named("arguments", "I submit it.\n<tool_call>\n", ""), true},
	{"Llama 3.1", reply.FormTextCall, named("parameters", "<|python_tag|>", "<|eom_id|>"), true},
	{"Llama's function", reply.FormTextCall, around("<function=submit_program>", "</function>"), true},
	{"Mistral", reply.FormTextCall, named("arguments", "[TOOL_CALLS] [", "]"), true},
	{"Mistral since v11", reply.FormTextCall, around("[TOOL_CALLS]submit_program[ARGS]", ""), true},
	{"Mistral with an id", reply.FormTextCall, around("[TOOL_CALLS]submit_program[CALL_ID]123[ARGS]", ""), true},
	{"DeepSeek V3", reply.FormTextCall,
		around("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>submit_program\n```json\n",
			"\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"), true},
	{"DeepSeek V3.1", reply.FormTextCall, around("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>submit_program<｜tool▁sep｜>",
		"<｜tool▁call▁end｜><｜tool▁calls▁end｜>"), true},
	{"DeepSeek V3.2", reply.FormTextCall, func(code string) string {
		return "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"submit_program\">\n<｜DSML｜parameter name=\"code\" string=\"true\">" + code + "</｜DSML｜parameter>\n<｜DSML｜parameter name=\"summary\" string=\"true\">adds</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>"
	}, true},
	{"Kimi K2", reply.FormTextCall,
		around("<|tool_calls_section_begin|><|tool_call_begin|>functions.submit_program:0<|tool_call_argument_begin|>",
			"<|tool_call_end|><|tool_calls_section_end|>"), true},
	{"Kimi K3", reply.FormTextCall, func(code string) string {
		return `<|open|>tools<|sep|><|open|>call tool="submit_program" index="1"<|sep|><|open|>argument key="code" type="string"<|sep|>` + code + `<|close|>argument<|sep|><|open|>argument key="summary" type="string"<|sep|>adds<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>`
	}, true},
	{"harmony", reply.FormTextCall,
		around("<|channel|>analysis<|message|>Add one.<|end|><|start|>assistant<|channel|>commentary to=functions.submit_program <|constrain|>json<|message|>", "<|call|>"), true},
	{"harmony without its marks", reply.FormTextCall,
		around("analysisWe need a program.assistantcommentary to=functions.submit_program json", ""), true},
	{"Qwen3-Coder", reply.FormTextCall, func(code string) string {
		return "<tool_call>\n<function=submit_program>\n<parameter=code>\n" + code +
			"\n</parameter>\n<parameter=summary>\nadds\n</parameter>\n</function>\n</tool_call>"
	}, true},
	{"Qwen3-Coder without ends", reply.FormTextCall, func(code string) string {
		return "I submit it.\n\n<function=submit_program>\n<parameter=summary>\nadds\n</parameter>\n<parameter=code>\n" + code + "\n</function>\n</tool_call>"
	}, true},
	{"Seed-OSS", reply.FormTextCall, func(code string) string {
		return "<seed:tool_call><function=submit_program><parameter=code>" + code +
			"</parameter><parameter=summary>adds</parameter></function></seed:tool_call>"
	}, true},
	{"GLM", reply.FormTextCall, func(code string) string {
		return "<tool_call>submit_program\n<arg_key>code</arg_key>\n<arg_value>" + code +
			"</arg_value>\n<arg_key>summary</arg_key>\n<arg_value>adds</arg_value>\n</tool_call>"
	}, true},
	{"MiniMax M1", reply.FormTextCall, named("arguments", "<tool_calls>\n", "\n</tool_calls>"), true},
	{"MiniMax M2", reply.FormTextCall, func(code string) string {
		return "<minimax:tool_call>\n<invoke name=\"submit_program\">\n<parameter name=\"code\">" + code +
			"</parameter>\n<parameter name=\"summary\">adds</parameter>\n</invoke>\n</minimax:tool_call>"
	}, true},
	{"MiniMax M3", reply.FormTextCall, func(code string) string {
		return "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"submit_program\">]<]minimax[>[<code>" + code +
			"]<]minimax[>[</code>]<]minimax[>[<summary>adds]<]minimax[>[</summary>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>"
	}, true},
	{"Step", reply.FormTextCall, func(code string) string {
		return "<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name=\"submit_program\">\n<steptml:parameter name=\"code\">" + code + "</steptml:parameter>\n<steptml:parameter name=\"summary\">adds</steptml:parameter>\n</steptml:invoke><｜tool_call_end｜>\n<｜tool_calls_end｜>"
	}, true},
	{"Anthropic", reply.FormTextCall, func(code string) string {
		return "<function_calls>\n<invoke name=\"submit_program\">\n<parameter name=\"code\">" + code +
			"</parameter>\n<parameter name=\"summary\">adds</parameter>\n</invoke>\n</function_calls>"
	}, true},
	{"an element for each argument", reply.FormTextCall, func(code string) string {
		return "<submit_program>\n<code>\n" + code + "\n</code>\n<summary>adds</summary>\n</submit_program>"
	}, true},
	{"Granite", reply.FormTextCall, named("arguments", "<|tool_call|>[", "]"), true},
	{"Phi", reply.FormTextCall, named("arguments", "functools[", "]"), true},
	{"Cohere", reply.FormTextCall, func(code string) string {
		return `<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "submit_program", "parameters": ` + args(code) +
			`}]<|END_ACTION|>`
	}, true},
	{"Apertus", reply.FormTextCall, func(code string) string {
		return `<|tools_prefix|>[{"submit_program": ` + args(code) + `}]<|tools_suffix|>`
	}, true},
	{"Nemotron", reply.FormTextCall, named("arguments", "<TOOLCALL>[", "]</TOOLCALL>"), true},
	{"InternLM", reply.FormTextCall, named("parameters", "<|action_start|><|plugin|>\n", "<|action_end|>"), true},
	{"Inkling", reply.FormTextCall, named("args",
		"<|content_thinking|>Add.<|end_message|><|message_model|><|content_invoke_tool_json|>", "<|end_message|>"),
		true},
	{"ReAct", reply.FormTextCall, around("Thought: I know.\nAction: submit_program\nAction Input: ", "\n"), true},
	{"Pythonic", reply.FormTextCall, func(code string) string {
		return "[submit_program(code=" + python(code, `"`) + `, summary="adds")]`
	}, true},
	{"Pythonic in single quotes", reply.FormTextCall, func(code string) string {
		return "<|tool_call_start|>[functions.submit_program(code=" + python(code, "'") +
			", summary='adds')]<|tool_call_end|>"
	}, true},
	{"Pythonic, printed", reply.FormTextCall, func(code string) string {
		return "```tool_code\nprint(default_api.submit_program(summary=\"adds\", code=r'''" + code +
			"''', parameters=[{'name': 'a', 'type': 'number', 'required': True, 'default': None}]))\n```"
	}, true},
	{"Pythonic, unescaped in three quotes", reply.FormTextCall, func(code string) string {
		return "```tool_code\nsubmit_program(\n    code=\"\"\"" + code + "\"\"\",\n    summary=\"adds\",\n)\n```"
	}, false},
	{"Gemma 4", reply.FormTextCall, func(code string) string {
		return `<|tool_call>call:submit_program{code:<|"|>` + code + `<|"|>,summary:<|"|>adds<|"|>}<tool_call|>`
	}, true},
	{"Python's dict", reply.FormTextCall, func(code string) string {
		return "{'name': 'submit_program', 'arguments': {'code': " + python(code, "'") +
			", 'summary': 'adds', 'parameters': None,}}"
	}, true},
	{"raw line breaks", reply.FormTextCall, func(code string) string {
		return `{"code": "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(code) + `", "summary": "adds"}`
	}, true},
	{"quotes that are not escaped", reply.FormTextCall, func(code string) string {
		return `{"code": "` + code + `", "summary": "adds"}`
	}, false},
	{"bare", reply.FormFence, func(code string) string { return strings.TrimSuffix(code, "\n") }, true},
}

func message(content string) openai.ChatCompletionResponse {
	return openai.ChatCompletionResponse{Choices: []openai.ChatCompletionChoice{{Message: openai.ChatCompletionMessage{Role: "assistant", Content: content}, FinishReason: "stop"}}}
}

func toolCall(name, arguments string) openai.ChatCompletionResponse {
	r := message("")
	r.Choices[0].Message.ToolCalls = []openai.ToolCall{{Type: "function",
		Function: openai.FunctionCall{Name: name, Arguments: arguments}}}
	return r
}

// sameProgram ignores the trailing space that bare source loses.
func sameProgram(got, want string) bool {
	return got == want || strings.TrimSuffix(want, "\n") == got
}

// A program is found unchanged in whatever form a model writes it.
func TestEachForm(t *testing.T) {
	t.Parallel()
	for _, w := range writers {
		programs := []string{plain}
		if w.exact {
			programs = append(programs, good)
		}
		for _, code := range programs {
			got, err := reply.Program(message(w.write(code)))
			if err != nil || !sameProgram(got.Code, code) || got.Form != w.form {
				t.Errorf("%s: got %s, %v:\n%s\nof\n%s", w.name, got.Form, err, got.Code, w.write(code))
			}
			if text := w.write(code); strings.Contains(text, "adds") && (string(got.Declaration.Summary) != `"adds"`) {
				t.Errorf("%s: got the summary %s", w.name, got.Declaration.Summary)
			}
		}
	}
}

// A program with a slip stays whole: a part of it that parses lacks what the rest declares.
func TestBrokenProgramIsLeftWhole(t *testing.T) {
	t.Parallel()
	const run = "func Run(call *recurgent.Call) (any, error) {\n\treturn join(\"a\"), nil\n}\n"
	for name, declared := range map[string]string{
		"a variable": "var join = map[string]func(a string) string{\n\t\"+\": func(a string) string { return a }\n}[\"+\"]\n\n",
		"a group":    "var (\n\tjoin = pick([]string{\n\t\t\"a\"\n\t})\n)\n\n",
		"a function": "func join(a string) any { return []string{\n\ta\n} }\n\n",
	} {
		code := "package tool\n\nimport \"recurgent\"\n\n" + declared + run
		got, err := reply.Program(message(args(code)))
		if err != nil || !sameProgram(got.Code, code) {
			t.Errorf("%s: %v:\n%s", name, err, got.Code)
		}
	}
}

// Servers take a whole answer for thoughts if the model began without thinking, or called the tool within its thoughts.
// The answer counts if it is unambiguous, and is requested again otherwise.
func TestStranded(t *testing.T) {
	t.Parallel()
	glm := func(code string) string {
		return "<tool_call>submit_program\n<arg_key>code</arg_key>\n<arg_value>" + code + "</arg_value>\n</tool_call>"
	}
	hermes := func(code string) string {
		return "<tool_call>\n{\"name\": \"submit_program\", \"arguments\": " + args(code) + "}\n</tool_call>"
	}
	inFence := func(code string) string { return "```go\n" + code + "```" }
	tests := []struct {
		name, thoughts, content, finish string
		ok                              bool
	}{
		{"a call", glm(plain), "", "stop", true},
		{"a call as the last part", "Add one.\n" + hermes(plain) + "\n", "", "stop", true},
		{"a call without marks", "Add one.\n{\"name\": \"submit_program\", \"arguments\": " + args(plain) + "}", "\n",
			"stop", true},
		{"a program", inFence(plain), "", "stop", true},
		{"the arguments", args(plain), "", "stop", true},

		{"bare source, which has no end", plain, "", "stop", false},
		{"a program after words", "First the naive version:\n" + inFence(plain), "", "stop", false},
		{"a program before words", inFence(plain) + "\nNo, that is wrong.", "", "stop", false},
		{"arguments after words", "I could send " + args(plain), "", "stop", false},
		{"words after the call", hermes(plain) + "\nNo, that is wrong.", "", "stop", false},
		{"a draft before the call", inFence(draft) + "\nNo.\n" + hermes(plain), "", "stop", false},
		{"an unfinished draft before the call", "```go\n" + draft[:len(draft)-8] + "\nNo.\n" + hermes(plain), "",
			"stop", false},
		{"a draft after the call", hermes(draft) + "\n" + inFence(plain), "", "stop", false},
		{"two calls", hermes(draft) + "\n" + hermes(plain), "", "stop", false},
		{"a mark of thoughts", "Add one.</think>" + hermes(plain), "", "stop", false},
		{"a mark that begins thoughts", "<think>" + inFence(draft) + "\n" + hermes(plain), "", "stop", false},
		{"a call of another tool", "{\"name\": \"save\", \"arguments\": " + args(plain) + "}\n<tool_call>", "", "stop",
			false},
		{"a call without its end", "<tool_call>\n{\"name\": \"submit_program\", \"arguments\": {\"code\": " +
			quote(plain)[:60], "", "stop", false},
		{"beside an answer", hermes(plain), "I cannot do that.", "stop", false},
		{"a reply that was cut off", hermes(plain), "", "length", false},
		{"a reply that a filter ended", hermes(plain), "", "content_filter", false},
	}
	for _, tt := range tests {
		r := message(tt.content)
		r.Choices[0].Message.ReasoningContent, r.Choices[0].FinishReason = tt.thoughts, openai.FinishReason(tt.finish)
		got, err := reply.Program(r)
		if (err == nil) != tt.ok || tt.ok && !sameProgram(got.Code, plain) {
			t.Errorf("%s: got %q, %v", tt.name, got.Code, err)
		}
	}
}

// thoughts lists the marks of thoughts; the opening mark may be missing.
var thoughts = []struct{ name, open, end string }{
	{"no beginning", "", "</think>\n\n"},
	{"think", "<think>", "</think>"},
	{"thinking", "<thinking>", "</thinking>\n"},
	{"after words", "Sure.\n<think>", "</think>\n"},
	{"after words in a line", "Sure. <think>", "</think>\n"},
	{"thought", "<thought>", "</thought>"},
	{"reasoning", "<reasoning>", "</reasoning>"},
	{"Mistral", "[THINK]", "[/THINK]"},
	{"no beginning, Mistral", "", "[/THINK]"},
	{"harmony", "<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"},
	{"harmony, its beginning in the prompt", "", "<|end|><|start|>assistant<|channel|>final<|message|>"},
	{"harmony without marks", "analysisWe try.\n", "assistantfinal"},
	{"Sky-T1", "<|begin_of_thought|>", "<|end_of_thought|><|begin_of_solution|>"},
	{"Kimi", "◁think▷", "◁/think▷"},
	{"Kimi K3", "<|open|>think<|sep|>", "<|close|>think<|sep|><|open|>response<|sep|>"},
	{"Cohere", "<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>"},
	{"Seed", "<seed:think>", "</seed:think>"},
	{"LongCat", "<longcat_think>", "</longcat_think>"},
	{"MiniMax", "<mm:think>", "</mm:think>"},
	{"Gemma", "<|channel>thought\n", "<channel|>"},
	{"Apertus", "<|inner_prefix|>", "<|inner_suffix|>"},
	{"Granite", "Here is my thought process:\n", "Here is my response:\n"},
	{"Apriel", "Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]\n"},
	{"MedGemma", "<unused94>thought\n", "<unused95>"},
	{"s1", "<|im_start|>think\n", "\n<|im_start|>answer\n"},
	{"Inkling", "<|content_thinking|>", "<|end_message|><|message_model|><|content_text|>"},
	{"Open WebUI", "<details type=\"reasoning\" done=\"true\">\n", "\n</details>\n"},
	{"twice", "<think>no</think>", "</think>"},
	{"quoted", "<think>I end it by `</think>` and \"</think>\" later.", "</think>"},
}

// unfinished lists ways in which drafts in thoughts break off.
var unfinished = []struct {
	name  string
	write func(string) string
}{
	{"fence without an end", func(code string) string { return "```go\n" + code }},
	{"fence in the middle of its code", func(code string) string { return "```go\n" + code[:len(code)-8] }},
	{"fence without a tag in the middle", func(code string) string { return "```\n" + code[:len(code)-8] + "\n" }},
	{"fence around all", func(code string) string { return "```\nSo:\n```go\n" + code + "```\n" }},
	{"call without an end", func(code string) string {
		return `{"name": "submit_program", "arguments": ` +
			args(code)
	}},
	{"call in the middle of its code",
		func(code string) string { return `{"code": ` + quote(code)[:len(quote(code))-10] }},
	{"call with raw line breaks in the middle", func(code string) string { return `{"code": "` + code[:len(code)-8] }},
	{"tag without an end", func(code string) string { return "<tool_call>\n<function=submit_program>\n<parameter=code>\n" + code }},
	{"a comment without an end", func(code string) string { return "```go\n" + code + "\n/* and\n" }},
}

// A draft that thoughts reject is never taken for the program, however both are written.
func TestThoughtsHoldNoProgram(t *testing.T) {
	t.Parallel()
	for k, th := range thoughts {
		for j, d := range writers {
			if testing.Short() && (k+j)%4 != 0 { // thousands of pairs
				continue
			}
			before := th.open + d.write(draft) + "\nNo, that is wrong.\n" + th.end
			for i, a := range writers {
				if i%5 != len(th.name)%5 && a.name != "fence" && a.name != d.name {
					continue // a part of all pairs
				}
				if a.name == "harmony without its marks" || strings.HasPrefix(th.name, "harmony without") &&
					strings.HasPrefix(a.name, "harmony") {
					continue
				}
				got, err := reply.Program(message(before + a.write(plain)))
				if err != nil || !sameProgram(got.Code, plain) {
					t.Errorf("%s, draft as %s, answer as %s: got %v\n%s\nof\n%s", th.name, d.name, a.name, err,
						got.Code, before+a.write(plain))
				}
			}
			if got, err := reply.Program(message(before + "I cannot do that.")); err == nil {
				t.Errorf("%s, draft as %s, no answer: got\n%s", th.name, d.name, got.Code)
			}
		}
		for _, d := range unfinished {
			before := th.open + d.write(draft) + "\n" + th.end
			got, err := reply.Program(message(before + "\n```go\n" + plain + "```\n"))
			if err != nil || got.Code != plain {
				t.Errorf("%s, draft as %s: got %v\n%s", th.name, d.name, err, got.Code)
			}
			if got, err := reply.Program(message(before + "I cannot do that.")); err == nil {
				t.Errorf("%s, draft as %s, no answer: got\n%s", th.name, d.name, got.Code)
			}
		}
	}
}

// A program is found in a call's arguments, however they are written.
func TestArgumentsOfCalls(t *testing.T) {
	t.Parallel()
	quoted := func(v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	python := strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\t", `\t`)
	for name, arguments := range map[string]func(code string) string{
		"JSON": func(code string) string {
			return quoted(map[string]any{"code": code,
				"summary": "says"})
		},
		"encoded twice":       func(code string) string { return quoted(quoted(map[string]any{"code": code})) },
		"encoded three times": func(code string) string { return quoted(quoted(quoted(map[string]any{"code": code}))) },
		"raw line breaks and tabs": func(code string) string {
			return `{"code": "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(code) + `"}`
		},
		"a comma behind the last": func(code string) string {
			return `{"code": ` + quoted(code) + `, "parameters": [{"name": "s", "type": "str",},],}`
		},
		"Python's quotes and literals": func(code string) string {
			return `{'code': '` + python.Replace(code) + `', 'solver_shape': None, 'strict': True}`
		},
		"keys without quotes": func(code string) string { return `{code: ` + quoted(code) + `}` },
		"wrapped in the call": func(code string) string {
			return quoted(map[string]any{"name": "submit_program", "arguments": map[string]any{"code": code}})
		},
		"wrapped, as a text": func(code string) string {
			return quoted(map[string]any{"arguments": quoted(map[string]any{"code": code})})
		},
		"wrapped in a list": func(code string) string { return quoted([]any{map[string]any{"code": code}}) },
		"lines": func(code string) string {
			return quoted(map[string]any{"code": strings.Split(strings.TrimSuffix(code, "\n"), "\n")})
		},
		"a fence": func(code string) string {
			return quoted(map[string]any{"code": "````go\n" + code +
				"````"})
		},
		"a file by its name": func(code string) string {
			return quoted(
				map[string]any{"code": map[string]any{"tool.go": code}})
		},
		"under another name": func(code string) string { return quoted(map[string]any{"source": code}) },
		"the program itself": func(code string) string { return code },
	} {
		for _, code := range []string{plain, good} {
			got, err := reply.Program(toolCall("submit_program", arguments(code)))
			if err != nil || got.Code != code || got.Form != reply.FormTool {
				t.Errorf("%s: got %v as %s\n%s\nof\n%s", name, err, got.Form, got.Code, arguments(code))
			}
		}
	}
}
