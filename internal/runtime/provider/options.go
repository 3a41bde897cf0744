package provider

import (
	"bytes"
	"errors"
	"fmt"
)

// Options of New.
type Options struct {
	Kind          string        // openai, replay or record
	OpenAI        OpenAIOptions // of openai and of what record wraps
	Recording     string        // path: what replay reads, what record adds to
	Embedded      []byte        // the recording that replay reads when Recording is ""
	OnRecordError func(error)   // see RecordOptions.OnError
}

// New makes the provider of a kind. What it returns may be an io.Closer.
func New(o Options) (Provider, error) {
	switch o.Kind {
	case "openai":
		return NewOpenAI(o.OpenAI)
	case "replay":
		if o.Recording != "" {
			return OpenReplay(o.Recording)
		}
		if len(o.Embedded) == 0 {
			return nil, errors.New("provider: replay needs a recording")
		}
		return NewReplay(bytes.NewReader(o.Embedded), "demo")
	case "record":
		inner, err := NewOpenAI(o.OpenAI)
		if err != nil {
			return nil, err
		}
		return NewRecord(RecordOptions{Inner: inner, Path: o.Recording, Secrets: inner.secrets,
			OnError: o.OnRecordError})
	}
	return nil, fmt.Errorf("provider: %q is not openai, replay or record", o.Kind)
}
