// Package postgres keeps the store in a PostgreSQL database, which any number of replicas share. What a commit has acknowledged is as durable as
// the database's own commits: with a synchronous standby it survives the loss of a machine.
//
// Calls are committed by group: one transaction for all calls that wait in this replica, which may be of different sessions and namespaces. A
// call that cannot be committed leaves the others alone. A commit whose connection broke is repeated by the call's id, so that it counts once.
// The rules of what a change does are those of packages agent and store: a transaction locks the rows that it changes, in sorted order, applies
// the change in Go, and writes them back. A group whose rows this replica wrote last asks for none of them: all of it is sent at once, each write
// names the version that it was made from, and where another replica was faster the group is tried again by reading first. Rows belong to a namespace
// by its id, which is never used again.
//
// Readers follow the feed of changes by (transaction, number) below the oldest transaction that is running, so that none is missed;
// notifications are a hint only, and polling finds the rest. Times that replicas have to agree on, of leases and of replicas themselves, are the
// database's; times that are stored are the caller's clock.
//
// It works behind a pooler that gives a connection out for one transaction (PgBouncer): sessions of the database hold nothing but what
// Options.Direct is for.
package postgres
