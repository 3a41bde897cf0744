package call

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

// ReadInputHistory checks the history input of a call and keeps its turns. The input is the call's history member, or
// the argument of the signature's history field, by name or by position. An empty history counts as absent.
func (c *Call) ReadInputHistory(ctx context.Context) error {
	if c.InputHistory == nil && len(c.Kwargs) <= len("{}") && len(c.Args) == 0 {
		return nil
	}
	t, err := c.ResolveTerms(ctx)
	if err != nil {
		return err
	}
	c.Early = &t
	sig, at, name := t.signature(), "/history", "history"
	if given, place := c.givenHistory(sig); given != nil {
		if at, name = place, sig.HistoryField(); c.InputHistory != nil {
			return &agent.InputError{Code: agent.ErrInvalidHistoryValue, Pointer: at,
				Detail: "the call has a history already", Hint: "give one of the two"}
		}
		c.InputHistory, c.historyArgument = given, place
	}
	if c.InputHistory == nil {
		return nil
	}
	if err := c.sessionTurns(ctx, sig); err != nil {
		return err
	}
	turns, err := history.Parse(c.InputHistory, name, sig, history.DefaultLimits())
	var bad *history.Error
	if errors.As(err, &bad) {
		return &agent.InputError{Code: bad.Code, Pointer: at + bad.Pointer, Detail: bad.Detail,
			Hint: `{"messages": [{"question": "q1", "answer": "a1"}]}`, Meta: bad.Meta}
	}
	if len(turns) == 0 {
		c.InputHistory = nil
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
	if given = Member(c.Kwargs, sig.HistoryField()); given != nil {
		return given, "/kwargs/" + sig.HistoryField()
	}
	i := slices.IndexFunc(sig.Inputs, func(f contract.Field) bool { return f.Name == sig.HistoryField() })
	if i < len(c.Args) && agent.Kind(c.Args[i]) != "null" {
		return c.Args[i], "/args/" + strconv.Itoa(i)
	}
	return nil, ""
}

// signature returns the contract's signature, or nil if it has no valid one.
func (t *Terms) signature() *contract.Signature {
	if t.Contract == nil || len(t.Contract.Signature) == 0 {
		return nil
	}
	s, err := contract.ParseSignature(t.Contract.Signature)
	if err != nil {
		return nil
	}
	return &s
}

// Member returns the value of an object's key, or nil if it is missing.
func Member(object json.RawMessage, key string) json.RawMessage {
	var found json.RawMessage
	rawjson.Members(object, func(k string, v []byte) {
		if k == key {
			found = v
		}
	})
	return found
}

// HistoryMessages returns the turns of the history input as messages for a model, secrets masked: for each turn a user
// message with its inputs and an assistant message with its outputs. It returns nil without a signature, because
// nothing else distinguishes inputs from outputs.
func (c *Call) HistoryMessages() []provider.Message {
	if c.signature == nil {
		return nil
	}
	turns := make([]history.Turn, len(c.inputTurns))
	for i, turn := range c.inputTurns {
		raw, masked := c.Rules.JSON(agent.Encoded(turn))
		var shown history.Turn
		if masked && json.Unmarshal(raw, &shown) == nil {
			turn = shown
		}
		turns[i] = turn
	}
	return history.Messages(turns, c.signature)
}

// WithoutInputHistory returns the arguments for a prompt, with secrets masked and without the history input, which the
// prompt contains as messages.
func (c *Call) WithoutInputHistory() ([]json.RawMessage, json.RawMessage) {
	args, kwargs := c.Shown().Args, c.Shown().Kwargs
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
