// Package predict answers requests from a signature alone, without a program. It renders the declared inputs into a
// conversation and parses one model reply into the declared outputs. An invalid request is rejected before the model is
// asked. If a reply does not fit, the model is asked once more, with the reason.
//
// Messages and Run store nothing; a Service logs predictions and keeps turns and named signatures in the store. Equal
// requests give identical messages, byte for byte, and a history adds messages without changing the others. The package
// may be used concurrently. Reading a reply scans the objects and lines that package reply finds once per declared
// output; an object's names are sorted.
package predict

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/history"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
)

// Values of Request.Adapter: the form in which the model is asked to answer. Lines and JSON are both read in any case.
const (
	adapterLines      = "lines"       // Field: value
	adapterJSON       = "json"        // a JSON object
	adapterJSONSchema = "json_schema" // a JSON object, enforced by the server if it can
)

// codeInvalidInput is the code of a request whose inputs do not fit the signature.
const codeInvalidInput = "invalid_input"

// A ReplyError reports that neither of the model's two replies fit.
type ReplyError struct {
	Reason   string
	Messages []provider.Message // the whole conversation
	Usage    agent.Usage
}

func (e *ReplyError) Error() string {
	return "the model's reply does not fit the signature: " + e.Reason
}

// Request describes one prediction.
type Request struct {
	Signature   contract.Signature
	Inputs      map[string]json.RawMessage // by field name; the history field holds a history input
	Demos       []json.RawMessage          // shaped like elements of a history input, which they precede
	Model       string
	Adapter     string // "" means AdapterLines
	Bare        bool   // a reply that names no output is the text of the only output
	Limits      history.Limits
	TraceParent string
	Owner       agent.Owner // the requester
	Charge      provider.Charge
}

// Result is the answer to a prediction.
type Result struct {
	Outputs  map[string]json.RawMessage // every output of the signature
	JSON     json.RawMessage            // the outputs as an object, in the signature's order
	Messages []provider.Message         // the conversation, including the replies
	Attempts int                        // 1, or 2 if the first reply did not fit
	Model    string
	Usage    agent.Usage
}

// maxRepeat bounds the part of a rejected reply that is shown to the model again, in bytes.
const maxRepeat = 16 << 10

// Run asks the model, at most twice. Errors are *agent.InputError (nothing was asked), *ReplyError, *provider.Error,
// *provider.ChargeError, or the context's cause. On a provider's or the context's error, the result holds the usage so
// far.
func Run(ctx context.Context, p provider.Provider, r Request) (Result, error) {
	messages, err := Messages(r)
	if err != nil {
		return Result{}, err
	}
	result := Result{Messages: messages}
	reason := ""
	for result.Attempts = 1; result.Attempts <= 2; result.Attempts++ {
		reply, err := ask(ctx, p, r, result.Messages)
		if again, ok := provider.Again(result.Messages, err); ok && result.Attempts == 1 {
			_, cost := provider.Answered(err, reply.Usage)
			result.Usage.Add(cost)
			result.Messages = again
			continue
		}
		if err != nil {
			err = addUsage(err, result.Usage)
			result.Usage.Add(reply.Usage)
			return Result{Usage: result.Usage}, err
		}
		result.Usage.Add(reply.Usage)
		result.Model = reply.Model
		result.Messages = append(slices.Clip(result.Messages), provider.Message{Role: "assistant",
			Content: reply.Content})
		if result.Outputs, reason = r.read(reply.Content); reason == "" {
			result.JSON = object(r.Signature.Outputs, result.Outputs)
			return result, nil
		}
		if result.Attempts == 1 {
			result.Messages[len(result.Messages)-1].Content = shorten(reply.Content)
			result.Messages = append(result.Messages, provider.Message{Role: "user", Content: again(r, reason)})
		}
	}
	return Result{}, &ReplyError{Reason: reason, Messages: result.Messages, Usage: result.Usage}
}

// read parses a reply to the request.
func (r Request) read(text string) (map[string]json.RawMessage, string) {
	if f := r.Signature.Outputs; r.Bare && len(f) == 1 && strings.TrimSpace(text) != "" && !names(r.Signature, text) {
		return fit(r.Signature, map[string]json.RawMessage{f[0].Name: quote(strings.TrimSpace(text))}, true)
	}
	return Read(r.Signature, text)
}

// ask sends one request. It returns an empty answer of the model as a reply, which then does not fit.
func ask(ctx context.Context, p provider.Provider, r Request, messages []provider.Message) (provider.ChatReply, error) {
	request := provider.ChatRequest{Model: r.Model, Messages: messages, TraceParent: r.TraceParent, Owner: r.Owner,
		Charge: r.Charge}
	if r.Adapter == adapterJSONSchema {
		request.Schema = Schema(r.Signature)
	}
	reply, err := p.Chat(ctx, request)
	var failed *provider.Error
	if errors.As(err, &failed) && failed.Reason == provider.ReasonNoAnswer && failed.Usage.ModelRequests > 0 &&
		p.Name() != "replay" {
		return provider.ChatReply{Usage: failed.Usage, Model: r.Model}, nil
	}
	return reply, err
}

// addUsage adds the usage of earlier requests to a failure.
func addUsage(err error, before agent.Usage) error {
	var failed *provider.Error
	var refused *provider.ChargeError
	if errors.As(err, &refused) {
		total := *refused
		total.Usage.Add(before)
		return &total
	}
	if !errors.As(err, &failed) {
		return err
	}
	total := *failed
	total.Usage.Add(before)
	return &total
}

// shorten cuts a rejected reply to maxRepeat bytes, at a character boundary.
func shorten(reply string) string {
	if len(reply) <= maxRepeat {
		return reply
	}
	return strings.ToValidUTF8(reply[:maxRepeat], "") + "..."
}

// again asks the model for another answer.
func again(r Request, reason string) string {
	return "That reply does not fit: " + reason + ". Answer again, the whole answer. " + form(r)
}

// checkDemos returns an *agent.InputError for the first demo that does not match the signature, or if there are too
// many.
func checkDemos(s *contract.Signature, demos []json.RawMessage, lim history.Limits) error {
	_, err := demoTurns(s, demos, lim)
	return err
}

// checkTurns rejects a demo that violates the schema of a field, because it would teach the model to do so.
func checkTurns(s *contract.Signature, turns []history.Turn) error {
	for i, t := range turns {
		for _, f := range slices.Concat(s.Inputs, s.Outputs) {
			v, ok := t[f.Name]
			if !ok {
				continue
			}
			if broken := f.Check(v); broken != nil {
				return &agent.InputError{Code: codeInvalidInput, Pointer: fmt.Sprintf("/demos/%d/%s", i,
					escape(f.Name)), Detail: "breaks the schema of its field: " + broken.Message}
			}
		}
	}
	return nil
}

// checkInputs checks that the inputs match the signature in name, type and schema, and that they are not too large. The
// history field is checked separately.
func checkInputs(r Request, historyField string) error {
	size := 0
	for _, name := range slices.Sorted(maps.Keys(r.Inputs)) {
		if !slices.ContainsFunc(r.Signature.Inputs, func(f contract.Field) bool { return f.Name == name }) {
			return &agent.InputError{Code: codeInvalidInput, Pointer: "/inputs/" + escape(name),
				Detail: "is no input of the signature", Meta: map[string]any{"field": name}}
		}
		if name != historyField {
			size += len(r.Inputs[name])
		}
	}
	if size > r.Limits.Bytes {
		return &agent.InputError{Code: history.CodeTooLarge, Pointer: "/inputs",
			Detail: fmt.Sprintf("have %d bytes; at most %d are read", size, r.Limits.Bytes)}
	}
	for _, f := range ordinary(r.Signature) {
		v, ok := r.Inputs[f.Name]
		if !ok {
			return &agent.InputError{Code: codeInvalidInput, Pointer: "/inputs/" + escape(f.Name), Detail: "is missing",
				Meta: map[string]any{"field": f.Name, "expected": f.Type, "got": "nothing"}}
		}
		if agent.Kind(v) == "null" {
			continue
		}
		if _, reason := typed(f, v); reason != "" {
			return &agent.InputError{Code: codeInvalidInput, Pointer: "/inputs/" + escape(f.Name), Detail: reason,
				Meta: map[string]any{"field": f.Name, "expected": f.Type, "got": agent.Kind(v)}}
		}
	}
	return nil
}
