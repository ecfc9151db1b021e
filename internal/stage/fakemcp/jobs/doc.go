// Package jobs is an MCP server whose tools run as tasks, for tests: in the legacy
// era where a client asks for it, in the modern one for clients that declare the
// extension. Its tools are those that the official conformance suite looks for.
//
//	greet               answers at once, never a task
//	slow_compute        takes as many seconds as it is told
//	failing_job         says that it failed; only as a task
//	protocol_error_job  ends with an error of the protocol
//	confirm_delete      asks one question
//	multi_input         asks two questions at a time
//	test_tool_with_task asks before it becomes a task; only as a task
package jobs
