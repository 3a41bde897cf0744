package predict

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/history"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
)

// Messages renders the conversation: a system message, the demos, the history, the current request. It returns an
// *agent.InputError if the request is invalid.
func Messages(r Request) ([]provider.Message, error) {
	if !slices.Contains([]string{"", adapterLines, adapterJSON, adapterJSONSchema}, r.Adapter) {
		return nil, &agent.InputError{Code: codeInvalidInput, Pointer: "/adapter",
			Detail: "must be lines, json or json_schema"}
	}
	if r.Limits == (history.Limits{}) {
		r.Limits = history.DefaultLimits()
	}
	field := r.Signature.HistoryField()
	if err := checkInputs(r, field); err != nil {
		return nil, err
	}
	turns, err := history.Parse(r.Inputs[field], field, &r.Signature, r.Limits)
	if err != nil {
		return nil, moved(err, "/inputs/"+field)
	}
	demos, err := demoTurns(&r.Signature, r.Demos, r.Limits)
	if err != nil {
		return nil, err
	}
	messages := []provider.Message{{Role: "system", Content: system(r)}}
	messages = append(messages, history.Messages(demos, &r.Signature)...)
	messages = append(messages, history.Messages(turns, &r.Signature)...)
	current := history.Turn{}
	for k, v := range r.Inputs {
		if k != field && agent.Kind(v) != "null" {
			current[k] = v
		}
	}
	return append(messages, provider.Message{Role: "user", Content: history.Render(current, ordinary(r.Signature))}),
		nil
}

// moved converts an error of package history to one whose pointer begins with at.
func moved(err error, at string) error {
	var e *history.Error
	if !errors.As(err, &e) {
		return err
	}
	return &agent.InputError{Code: e.Code, Pointer: at + e.Pointer, Detail: e.Detail, Meta: e.Meta}
}

// demoTurns parses the demos like a history, and checks them against the schemas of the fields.
func demoTurns(s *contract.Signature, demos []json.RawMessage, lim history.Limits) ([]history.Turn, error) {
	if len(demos) == 0 {
		return nil, nil
	}
	raw, err := json.Marshal(map[string]any{"messages": demos})
	if err != nil {
		return nil, &agent.InputError{Code: codeInvalidInput, Pointer: "/demos", Detail: "must be a list of objects"}
	}
	turns, err := history.Parse(raw, "demos", s, lim)
	if err == nil {
		return turns, checkTurns(s, turns)
	}
	var e *history.Error
	if !errors.As(err, &e) {
		return nil, err
	}
	code := codeInvalidInput
	if e.Code == history.CodeTooLarge {
		code = e.Code
	}
	return nil, &agent.InputError{Code: code, Pointer: "/demos" + strings.TrimPrefix(e.Pointer, "/messages"),
		Detail: e.Detail, Meta: e.Meta}
}

// ordinary returns the inputs except the history.
func ordinary(s contract.Signature) []contract.Field {
	return slices.DeleteFunc(slices.Clone(s.Inputs),
		func(f contract.Field) bool { return f.Type == contract.TypeHistory })
}

// system renders the system message. It does not depend on whether there is a history field.
func system(r Request) string {
	var b strings.Builder
	if text := strings.TrimSpace(r.Signature.Instructions); text != "" {
		b.WriteString(text + "\n\n")
	}
	b.WriteString("You are given:\n")
	for _, f := range ordinary(r.Signature) {
		b.WriteString("- " + describe(f) + "\n")
	}
	b.WriteString("You answer with:\n")
	for _, f := range r.Signature.Outputs {
		b.WriteString("- " + describe(f) + "\n")
	}
	b.WriteString("\n" + form(r))
	return b.String()
}

func describe(f contract.Field) string {
	text := history.Label(f.Name) + " (" + f.Type + ")"
	if f.Description != "" {
		text += ": " + strings.Join(strings.Fields(f.Description), " ")
	}
	if len(f.Schema) > 0 {
		text += "; keeps the JSON Schema " + string(f.Schema)
	}
	return text
}

// form describes the form in which the model must write its answer.
func form(r Request) string {
	if r.Adapter == adapterJSON || r.Adapter == adapterJSONSchema {
		names := make([]string, len(r.Signature.Outputs))
		for i, f := range r.Signature.Outputs {
			name, _ := json.Marshal(f.Name) // a string always encodes
			names[i] = string(name) + ": " + f.Type
		}
		return "Write the answer as one JSON object and nothing else: {" + strings.Join(names, ", ") + "}"
	}
	lines := make([]string, len(r.Signature.Outputs))
	for i, f := range r.Signature.Outputs {
		value := "<" + f.Type + ">"
		if f.Type != contract.TypeString {
			value = "<" + f.Type + ", as JSON>"
		}
		lines[i] = history.Label(f.Name) + ": " + value
	}
	return "Write the answer in this form and nothing else:\n" + strings.Join(lines, "\n")
}

// Schema returns the JSON Schema of the outputs, for servers that enforce one.
func Schema(s contract.Signature) json.RawMessage {
	properties, required := map[string]any{}, make([]string, 0, len(s.Outputs))
	for _, f := range s.Outputs {
		properties[f.Name] = fieldSchema(f)
		required = append(required, f.Name)
	}
	raw, err := json.Marshal(map[string]any{"type": "object", "required": required, "properties": properties,
		"additionalProperties": false})
	if err != nil {
		return nil // unreachable: only strings, lists and maps
	}
	return raw
}

// fieldSchema returns the schema of one output. References in the field's own schema would not resolve inside the
// larger one. Such a schema is reduced to its type, and the reply is checked against the whole when it is read.
func fieldSchema(f contract.Field) map[string]any {
	schema := map[string]any{}
	if len(f.Schema) > 0 && !bytes.Contains(f.Schema, []byte(`"$`)) {
		_ = json.Unmarshal(f.Schema, &schema) // ParseSignature has checked that it is an object
	}
	if _, has := schema["type"]; !has && f.Type != contract.TypeAny {
		schema["type"] = f.Type
	}
	if f.Description != "" {
		schema["description"] = f.Description
	}
	return schema
}

// object returns the values as a JSON object in the order of the fields.
func object(fields []contract.Field, values map[string]json.RawMessage) json.RawMessage {
	b := []byte{'{'}
	for i, f := range fields {
		if i > 0 {
			b = append(b, ',')
		}
		name, _ := json.Marshal(f.Name) // a string always encodes
		b = append(append(append(b, name...), ':'), values[f.Name]...)
	}
	return append(b, '}')
}

// escape escapes a token of a JSON pointer (RFC 6901).
func escape(token string) string {
	return strings.ReplaceAll(strings.ReplaceAll(token, "~", "~0"), "/", "~1")
}
