package mcp

import (
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/catalog"
)

// Tool returns the tool in the format of tools/list.
func Tool(t *catalog.Tool) *sdk.Tool {
	destructive, open := false, t.OpenWorld
	out := &sdk.Tool{Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.Parameters,
		OutputSchema: outputSchema(t.Returns),
		Annotations: &sdk.ToolAnnotations{Title: t.Title, ReadOnlyHint: t.ReadOnly, IdempotentHint: t.ReadOnly,
			OpenWorldHint: &open}}
	if t.ReadOnly {
		out.Annotations.DestructiveHint = &destructive
	}
	return out
}

// outputSchema returns the schema of an outcome whose value matches returns. nil returns allow any value.
func outputSchema(returns json.RawMessage) json.RawMessage {
	if returns == nil {
		returns = json.RawMessage("{}")
	}
	text := func(description string) map[string]any {
		return map[string]any{"type": "string", "description": description}
	}
	return agent.Encoded(map[string]any{
		"type": "object", "required": []string{"status", "ok", "tool_role", "method_name"},
		"properties": map[string]any{
			"status":        map[string]any{"type": "string", "enum": []string{agent.StatusOK, agent.StatusError}},
			"ok":            map[string]any{"type": "boolean"},
			"value":         returns,
			"error_type":    text("Why it failed, in one word, such as invalid_input."),
			"error_message": text("The same in words."),
			"retriable":     map[string]any{"type": "boolean", "description": "The same call may succeed later."},
			"authored": map[string]any{"type": "boolean",
				"description": "The program itself returned the error: an honest answer."},
			"metadata":  map[string]any{"type": "object", "properties": map[string]any{}},
			"tool_role": text("The role."), "method_name": text("The method."),
		},
	})
}
