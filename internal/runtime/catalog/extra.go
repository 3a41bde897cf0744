package catalog

import "slices"

// Tools offered in addition to the methods. Unlike these, their names do not contain "__".
var (
	CallMethod = extra("call_method",
		"Call any method of any role by name. One that does not exist yet is written by a model first, which takes a while. Say what the method does by its name and role.",
		property{"role", true, &shape{kind: "string", description: "Who is asked, such as calculator."}},
		property{"method", true, &shape{kind: "string", description: "What is asked, such as add."}},
		property{"args", false, freeForm.property("args").of}, property{"kwargs", false,
			freeForm.property("kwargs").of})
	FindTools = extra("find_tools",
		"Search the tools by words. The answer has the name, the description and the schema of each, so that you can call it by its name.",
		property{"query", true, &shape{kind: "string", description: "Words that say what the tool should do."}},
		property{"limit", false, &shape{kind: "integer", description: "10 where it is absent.", least: "1",
			most: "50"}})
)

// Further tools for MCP only, which offers sessions, verdicts and uploads as tools.
var (
	CallInSession = extra(CallMethod.Name, CallMethod.Description, append(slices.Clip(CallMethod.shape.properties),
		property{"session_id", false, &shape{kind: "string",
			description: "The conversation that the call is part of."}},
		property{"timeout_ms", false, &shape{kind: "integer", least: "1", most: "3600000"}})...)
	JudgeCall = extra("judge_call",
		"Say that the answer of a call was right or wrong. A wrong one with an expected value has the program corrected.",
		property{"call_id", true, &shape{kind: "string", description: "As the result of the call has it."}},
		property{"verdict", true, &shape{kind: "string", enum: []string{"right", "wrong"}}},
		property{"expected", false, &shape{description: "The right value, for a wrong answer."}},
		property{"expected_error_type", false, &shape{kind: "string",
			description: "The right error, such as not_found."}},
		property{"note", false, &shape{kind: "string", description: "Why, in at most 4096 bytes."}})
	NewSession = extra("new_session",
		"Begin a conversation. Calls that name its id share a memory, and see what earlier ones did.",
		property{"role", true, &shape{kind: "string", description: "Who is asked where a call names nobody."}},
		property{"context", false, &shape{kind: "object", description: "The memory to begin with."}})
	UploadFile = extra("upload_file",
		`Keep a file. The answer's "file" can be passed as an argument to any tool that takes a file.`,
		property{"content", true, &shape{kind: "string", description: "The text of the file, or its bytes in base64."}},
		property{"name", false, &shape{kind: "string", description: "Such as sales.csv."}},
		property{"media_type", false, &shape{kind: "string",
			description: "Such as text/csv; text/plain for text, application/octet-stream for base64 where it is absent."}},
		property{"encoding", false, &shape{kind: "string", enum: []string{"text", "base64"},
			description: "How content is given; text where it is absent."}},
		property{"session_id", false, &shape{kind: "string",
			description: "The conversation with which the file is deleted."}})
)

// Extra holds the tools that come first in every list. It must not be changed.
var Extra = []*Tool{CallMethod, FindTools}

// Bounds of a search by FindTools.
const (
	MaxQuery     = 2000 // bytes
	MaxFound     = 50
	DefaultFound = 10
)

// extra returns a tool that is not a method.
func extra(name, description string, properties ...property) *Tool {
	s := &shape{kind: "object", properties: properties}
	return &Tool{Name: name, Title: name, Description: description, Parameters: s.schema(), shape: s}
}
