package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/rawjson"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/history"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
)

// readInputHistory checks the history input of a call and keeps its turns. The input is the call's history member, or
// the argument of the signature's history field, by name or by position. An empty history counts as absent.
func (c *Call) readInputHistory(ctx context.Context) error {
	if c.inputHistory == nil && len(c.kwargs) <= len("{}") && len(c.args) == 0 {
		return nil
	}
	t, err := c.resolveTerms(ctx)
	if err != nil {
		return err
	}
	c.early = &t
	sig, at, name := t.signature(), "/history", "history"
	if given, place := c.givenHistory(sig); given != nil {
		if at, name = place, sig.HistoryField(); c.inputHistory != nil {
			return &agent.InputError{Code: agent.ErrInvalidHistoryValue, Pointer: at,
				Detail: "the call has a history already", Hint: "give one of the two"}
		}
		c.inputHistory, c.historyArgument = given, place
	}
	if c.inputHistory == nil {
		return nil
	}
	if err := c.sessionTurns(ctx, sig); err != nil {
		return err
	}
	turns, err := history.Parse(c.inputHistory, name, sig, history.DefaultLimits())
	var bad *history.Error
	if errors.As(err, &bad) {
		return &agent.InputError{Code: bad.Code, Pointer: at + bad.Pointer, Detail: bad.Detail,
			Hint: `{"messages": [{"question": "q1", "answer": "a1"}]}`, Meta: bad.Meta}
	}
	if len(turns) == 0 {
		c.inputHistory = nil
	}
	c.inputTurns, c.signature = turns, sig
	return err
}

// givenHistory returns the argument of the signature's history field and the JSON pointer to it, or nil if there is
// none.
func (c *Call) givenHistory(sig *contract.Signature) (given json.RawMessage, place string) {
	if sig == nil || sig.HistoryField() == "" {
		return nil, ""
	}
	if given = member(c.kwargs, sig.HistoryField()); given != nil {
		return given, "/kwargs/" + sig.HistoryField()
	}
	i := slices.IndexFunc(sig.Inputs, func(f contract.Field) bool { return f.Name == sig.HistoryField() })
	if i < len(c.args) && agent.Kind(c.args[i]) != "null" {
		return c.args[i], "/args/" + strconv.Itoa(i)
	}
	return nil, ""
}

// signature returns the contract's signature, or nil if it has no valid one.
func (t *terms) signature() *contract.Signature {
	if t.contract == nil || len(t.contract.Signature) == 0 {
		return nil
	}
	s, err := contract.ParseSignature(t.contract.Signature)
	if err != nil {
		return nil
	}
	return &s
}

// member returns the value of an object's key, or nil if it is missing.
func member(object json.RawMessage, key string) json.RawMessage {
	var found json.RawMessage
	rawjson.Members(object, func(k string, v []byte) {
		if k == key {
			found = v
		}
	})
	return found
}

// historyMessages returns the turns of the history input as messages for a model, secrets masked: for each turn a user
// message with its inputs and an assistant message with its outputs. It returns nil without a signature, because
// nothing else distinguishes inputs from outputs.
func (c *Call) historyMessages() []provider.Message {
	if c.signature == nil {
		return nil
	}
	turns := make([]history.Turn, len(c.inputTurns))
	for i, turn := range c.inputTurns {
		raw, masked := c.rules.JSON(agent.Encoded(turn))
		var shown history.Turn
		if masked && json.Unmarshal(raw, &shown) == nil {
			turn = shown
		}
		turns[i] = turn
	}
	return history.Messages(turns, c.signature)
}

// withoutInputHistory returns the arguments for a prompt, with secrets masked and without the history input, which the
// prompt contains as messages.
func (c *Call) withoutInputHistory() ([]json.RawMessage, json.RawMessage) {
	args, kwargs := c.shown().args, c.shown().kwargs
	if at, ok := strings.CutPrefix(c.historyArgument, "/args/"); ok {
		i, _ := strconv.Atoi(at)
		if i == len(args)-1 {
			return args[:i], kwargs
		}
		args = slices.Clone(args)
		args[i] = json.RawMessage("null")
		return args, kwargs
	}
	name, ok := strings.CutPrefix(c.historyArgument, "/kwargs/")
	var all map[string]json.RawMessage
	if !ok || json.Unmarshal(kwargs, &all) != nil {
		return args, kwargs
	}
	delete(all, name)
	return args, agent.Encoded(all)
}
