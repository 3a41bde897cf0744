package mcp

import (
	"slices"
	"testing"

	"github.com/recurgentd/recurgentd/internal/access"
)

func TestNeeds(t *testing.T) {
	t.Parallel()
	read, call := access.Read, access.Call
	for message, want := range map[string][]access.Scope{
		`{"jsonrpc":"2.0","id":1,"method":"initialize"}`: nil,
		`{"method":"ping"}`:                                                               nil,
		`{"method":"notifications/initialized"}`:                                          nil,
		`{"method":"server/discover"}`:                                                    nil,
		`{"method":"tools/list","params":{"name":"x"}}`:                                   {read},
		`{"method":"subscriptions/listen"}`:                                               {read},
		`{"method":"tools/call","params":{"name":"find_tools"}}`:                          {read},
		`{"method":"tools/call","params":{"name":"judge_call"}}`:                          {call},
		`{"method":"tools/\u0063all","params":{"name":"find_tools"}}`:                     {read},
		`{"method":"tools/call"}`:                                                         {call},
		`{"method":"tools/call","params":{"name":"find_tools","Name":"call_method"}}`:     {call},
		`{"method":"tools/call","params":{"name":"find_tools"},"Params":{"name":"a__b"}}`: {call},
		`{"method":"ping","Method":"tools/call","params":{"name":"a__b"}}`:                {read, call},
		`{"method":"ping","method":"tools/call"}`:                                         {read, call},
		`[{"method":"ping"}]`:                                                             {read, call},
		`{"method":"resources/read"}`:                                                     {read},
		`{"method":"resources/list"}`:                                                     {read},
		`{"method":"resources/templates/list"}`:                                           {read},
		`{"method":"resources/subscribe"}`:                                                {read, call},
		`{"method":"tools/call","params":{"name":"upload_file"}}`:                         {call},
		`{"method":7}`: {read, call},
		`{}`:           {read, call},
		`nonsense`:     {read, call},
	} {
		if got := Needs([]byte(message)); !slices.Equal(got, want) {
			t.Errorf("%s needs %v, want %v", message, got, want)
		}
	}
}
