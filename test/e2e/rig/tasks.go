package rig

import (
	"encoding/json"
	"os"
	"testing"
)

// A Task describes a method and calls of it with the correct results.
type Task struct {
	ID          string          `json:"id"`
	Role        string          `json:"role"`
	Method      string          `json:"method"`
	Purpose     string          `json:"purpose"`
	Deliverable json.RawMessage `json:"deliverable"`
	Context     json.RawMessage `json:"context"`
	Calls       []struct {
		Args   json.RawMessage `json:"args"`
		Kwargs json.RawMessage `json:"kwargs"`
		Expect any             `json:"expect"`
		Error  string          `json:"expect_error"` // expected error type instead of a value
	} `json:"calls"`
}

// Tasks reads tasks from a JSON file.
func Tasks(t testing.TB, file string) []Task {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []Task
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// Contract returns the task's contract in the form of a request.
func (k *Task) Contract() map[string]any {
	contract := map[string]any{"purpose": k.Purpose}
	if string(k.Deliverable) != "null" {
		contract["deliverable"] = k.Deliverable
	}
	return contract
}
