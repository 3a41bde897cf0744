package catalog

// Tools in addition to the methods, whose names have "__".
var (
	CallMethod = extra("call_method", "Call any method of any role by name. One that does not exist yet is written by a model first, which takes a while. Say what the method does by its name and role.",
		property{"role", true, &shape{kind: "string", description: "Who is asked, such as calculator."}}, property{"method", true, &shape{kind: "string", description: "What is asked, such as add."}},
		property{"args", false, freeForm.property("args").of}, property{"kwargs", false, freeForm.property("kwargs").of})
	FindTools = extra("find_tools", "Search the tools by words. The answer has the name, the description and the schema of each, so that you can call it by its name.",
		property{"query", true, &shape{kind: "string", description: "Words that say what the tool should do."}},
		property{"limit", false, &shape{kind: "integer", description: "10 where it is absent.", least: "1", most: "50"}})
)

// Extra lists the tools that lists begin with, in that order. It must not be changed.
var Extra = []*Tool{CallMethod, FindTools}

// Bounds of a search by FindTools.
const (
	MaxQuery     = 2000 // bytes
	MaxFound     = 50
	DefaultFound = 10
)

func extra(name, description string, properties ...property) *Tool {
	s := &shape{kind: "object", properties: properties}
	return &Tool{Name: name, Title: name, Description: description, Parameters: s.schema(), shape: s}
}
