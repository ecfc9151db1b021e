// Package replicas stages a gateway of several replicas: real processes on one PostgreSQL
// database, behind a load balancer that gives each request to the next of them.
//
// The processes are the test program itself, so that nothing is built: it calls [Main] when
// [IsChild] says so, before it does anything else. They are stopped and woken by signals, so it is for Unix.
package replicas
