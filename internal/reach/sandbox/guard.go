// Package sandbox puts a guard process around each local MCP server, which ends the
// server and all that it started when this process is gone, by whatever death, and
// starts it in a [Sandbox] where there is to be one.
//
// The guard is this very program, started anew. It is one from the init function
// of this package on, and imports only what is initialised early: packages are
// initialised in the order of their paths, as far as what they import allows. So a
// guard never sets up the rest of the program, whose tables and styles take longer
// than all that it does, and whatever program this package is in has guards
// without a line in its main function. Neither fmt nor os/exec may be imported
// here; TestGuardStartsBare tells what else would spoil it.
package sandbox

// argument is the first argument of our program when it is to be a guard; words
// about the sandbox and the command to guard follow.
const argument = "__guard"
