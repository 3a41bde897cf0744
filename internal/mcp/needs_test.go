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
		`{"method":"tasks/get","params":{"taskId":"x"}}`:                                  {read},
		`{"method":"tasks/result"}`:                                                       {read},
		`{"method":"tasks/list"}`:                                                         {read},
		`{"method":"tasks/cancel"}`:                                                       {call},
		`{"method":"tasks/update"}`:                                                       {call},
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

// Each message counts as a call or as a stream, or is answered at once.
func TestWhatMessagesCountAs(t *testing.T) {
	t.Parallel()
	for message, want := range map[string][2]bool{ // a call, a stream
		`{"method":"tools/call"}`:                                                 {true, false},
		`{"method":"tools/list"}`:                                                 {false, false},
		`{"method":"tasks/get"}`:                                                  {false, false},
		`{"method":"tasks/cancel"}`:                                               {false, false},
		`{"method":"tasks/result"}`:                                               {false, true},
		`{"method":"subscriptions/listen"}`:                                       {false, true},
		`{"jsonrpc":"2.0","method":"subscriptions\/listen"}`:                      {false, true},
		`{"method":"tasks\u002fresult"}`:                                          {false, true},
		`{"method":"tools/call","params":{"method":"subscriptions/listen"}}`:      {true, false},
		`{"method":"tools/call","params":{"arguments":["subscriptions/listen"]}}`: {true, false},
		`{"method":"tasks/get","method":"tools/call"}`:                            {true, false},
		`{"method":"tasks/get","Method":"tools/call"}`:                            {true, false},
		`{"method":5,"x":"subscriptions/listen"}`:                                 {true, false},
		`[{"method":"tasks/get"}]`:                                                {true, false},
		`subscriptions/listen`:                                                    {true, false},
		``:                                                                        {true, false},
	} {
		if got := [2]bool{Calls([]byte(message)), Lasts([]byte(message))}; got != want {
			t.Errorf("%s: %v, want %v", message, got, want)
		}
	}
}
