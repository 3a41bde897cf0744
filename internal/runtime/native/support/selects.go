package support

// Sent returns a function that returns what it is given as a value that the channel takes.
func Sent[C ~chan T | ~chan<- T, T any](C) func(T) T { return func(v T) T { return v } }
