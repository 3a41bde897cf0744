// Package postgres implements the store in a PostgreSQL database that any number of replicas share. An acknowledged
// commit is as durable as the database's own commits: with a synchronous standby it survives the loss of a machine.
//
// Calls are committed in groups: one transaction commits all calls that wait in this replica, across sessions and
// namespaces. A call that cannot be committed does not affect the others. A commit whose connection broke is repeated
// under the call's id, so it counts once. Packages agent and store decide what a change does. A transaction locks the
// rows that it changes in sorted order, applies the change in Go, and writes the rows back. If this replica was the
// last to write all rows of a group, it does not read them: it sends the whole group at once, and each write names the
// version that it is based on. If another replica was faster, the group is retried with reads first. Rows belong to a
// namespace by its id, which is never reused.
//
// Readers follow the change feed by (transaction, number), below the oldest running transaction, so they miss no
// change. Notifications are only a hint; polling finds the rest. Times that replicas must agree on, for leases and for
// the replicas themselves, come from the database. Stored times come from the caller's clock.
//
// The package works behind a pooler in transaction mode (PgBouncer). It keeps no state in database sessions, except on
// connections to Options.Direct.
package postgres
