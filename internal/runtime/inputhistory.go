package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/rawjson"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/history"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
)

// readInputHistory checks the history input of a call and keeps its turns. The input is the call's history member, or the
// keyword argument of the signature's history field. An empty one counts as absent.
func (c *opened) readInputHistory(ctx context.Context) error {
	if c.inputHistory == nil && len(c.kwargs) <= len("{}") {
		return nil
	}
	t, err := c.resolveTerms(ctx)
	if err != nil {
		return err
	}
	sig := t.signature()
	at := "/history"
	if sig != nil && sig.HistoryField() != "" {
		if given := member(c.kwargs, sig.HistoryField()); given != nil {
			at = "/kwargs/" + sig.HistoryField()
			if c.inputHistory != nil {
				return &agent.InputError{Code: agent.ErrInvalidHistoryValue, Pointer: at, Detail: "the call has a history already", Hint: "give one of the two"}
			}
			c.inputHistory, c.historyArgument = given, sig.HistoryField()
		}
	}
	if c.inputHistory == nil {
		return nil
	}
	if err := c.sessionTurns(ctx, sig); err != nil {
		return err
	}
	turns, err := history.Parse(c.inputHistory, at[strings.LastIndexByte(at, '/')+1:], sig, history.DefaultLimits())
	var bad *history.Error
	if errors.As(err, &bad) {
		return &agent.InputError{Code: bad.Code, Pointer: at + bad.Pointer, Detail: bad.Detail, Hint: `{"messages": [{"question": "q1", "answer": "a1"}]}`, Meta: bad.Meta}
	}
	if len(turns) == 0 {
		c.inputHistory = nil
	}
	c.inputTurns, c.signature = turns, sig
	return err
}

// signature returns the contract's signature, nil if it has none.
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

// member returns the value of an object's key, nil if it is missing.
func member(object json.RawMessage, key string) json.RawMessage {
	var found json.RawMessage
	rawjson.Members(object, func(k string, v []byte) {
		if k == key {
			found = v
		}
	})
	return found
}

// historyMessages returns the turns of the history input as messages for a model, secrets masked: for each turn a user message
// of its inputs and an assistant message of its outputs. Without a signature, nothing distinguishes inputs
// from outputs, and there are no messages.
func (c *opened) historyMessages() []provider.Message {
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

// shownKwargs returns the keyword arguments for a prompt: secrets masked, and without the history input, which the prompt has as
// messages.
func (c *opened) shownKwargs() json.RawMessage {
	if c.historyArgument == "" {
		return c.shown().kwargs
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(c.shown().kwargs, &all) != nil {
		return c.shown().kwargs
	}
	delete(all, c.historyArgument)
	return agent.Encoded(all)
}
