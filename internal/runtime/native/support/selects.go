package support

// Sent returns a function that returns its argument, converted to the element type of the channel.
func Sent[C ~chan T | ~chan<- T, T any](C) func(T) T { return func(v T) T { return v } }
