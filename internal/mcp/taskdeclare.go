package mcp

import (
	"context"
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/recurgentd/recurgentd/internal/runtime/catalog"
)

// declared adds to the capabilities of a server that there are tasks, in the form of the version: the library knows none.
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

// initialized is the result of initialize with the capabilities of the core's tasks.
type initialized struct {
	*sdk.InitializeResult
	Capabilities *capabilities `json:"capabilities"`
}

type capabilities struct {
	*sdk.ServerCapabilities
	Tasks json.RawMessage `json:"tasks"`
}

// callTasks declares that a tools/call may be a task, and that tasks can be listed and canceled.
var callTasks = json.RawMessage(`{"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}`)

// A listedTool is a tool with what version 2025-11-25 says of its calls.
type listedTool struct {
	*sdk.Tool
	Execution *execution `json:"execution,omitempty"`
}

type execution struct {
	TaskSupport string `json:"taskSupport"`
}

// listedTools is the result of tools/list with what the tools say of tasks.
type listedTools struct {
	*sdk.ListToolsResult
	Tools []listedTool `json:"tools"`
}

// withExecution says of each tool that makes a call that it can be a task. Of the others nothing is said, which means that they cannot.
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

// asksForTasks reports whether a client asks to be notified of tasks. None is: clients ask for them.
func asksForTasks(ctx context.Context) bool {
	return only(only(requestOf(ctx).params, "notifications"), "taskIds") != nil
}
