// Package database holds a real daemon on a real PostgreSQL database, and the commands that work on one, to what they promise their users.
package database
