package mcp

import (
	"context"
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/recurgentd/recurgentd/internal/runtime/catalog"
)

// declared adds tasks to the capabilities in a result, in the form of the version, since the SDK does not support them.
func declared(result sdk.Result) sdk.Result {
	switch r := result.(type) {
	case *sdk.InitializeResult:
		if r != nil && formOf(r.ProtocolVersion) == coreTasks {
			return &initialized{InitializeResult: r, Capabilities: &capabilities{ServerCapabilities: r.Capabilities,
				Tasks: callTasks}}
		}
	case *sdk.DiscoverResult:
		if r != nil {
			r.Capabilities.AddExtension(tasksExtension, nil)
		}
	}
	return result
}

// initialized is the result of initialize, with the capability of tasks in the core's form.
type initialized struct {
	*sdk.InitializeResult
	Capabilities *capabilities `json:"capabilities"`
}

// capabilities adds tasks to the SDK's capabilities.
type capabilities struct {
	*sdk.ServerCapabilities
	Tasks json.RawMessage `json:"tasks"`
}

// callTasks declares that a tools/call may become a task, and that tasks can be listed and canceled.
var callTasks = json.RawMessage(`{"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}`)

// A listedTool is a tool with the task support that version 2025-11-25 declares per tool.
type listedTool struct {
	*sdk.Tool
	Execution *execution `json:"execution,omitempty"`
}

// execution declares whether a tool supports tasks: optional means that the client chooses.
type execution struct {
	TaskSupport string `json:"taskSupport"`
}

// listedTools is the result of tools/list in version 2025-11-25.
type listedTools struct {
	*sdk.ListToolsResult
	Tools []listedTool `json:"tools"`
}

// withExecution declares task support for the tools that make a call. The others have no declaration, which means none.
func (s *Server) withExecution(r *sdk.ListToolsResult) sdk.Result {
	out := &listedTools{ListToolsResult: r, Tools: make([]listedTool, len(r.Tools))}
	for i, t := range r.Tools {
		out.Tools[i].Tool = t
		if x, extra := s.extras[t.Name]; !extra || x.of == catalog.CallInSession {
			out.Tools[i].Execution = &execution{"optional"}
		}
	}
	return out
}

// asksForTasks reports whether a subscription asks for notifications about tasks. They are not supported: clients poll.
func asksForTasks(ctx context.Context) bool {
	return only(only(requestOf(ctx).params, "notifications"), "taskIds") != nil
}
