package provider

import (
	"bytes"
	"errors"
	"fmt"
)

// Options configures New.
type Options struct {
	Kind          string        // openai, replay or record
	OpenAI        OpenAIOptions // for openai, and for the provider that record wraps
	Recording     string        // path that replay reads and record appends to
	Embedded      []byte        // the recording that replay reads if Recording is ""
	OnRecordError func(error)   // see RecordOptions.OnError
}

// New returns the provider of a kind. If it is an io.Closer, the caller must close it.
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
