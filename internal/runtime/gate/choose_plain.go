package gate

import "go/ast"

// plain lists the kinds of nodes that plain programs consist of, and the uses of each that yaegi gets wrong. A kind
// that is not listed keeps its program from yaegi: labels, function literals, channels, defer, structs.
//
// A comment on a refusal describes what yaegi did where the toolchain was right.
func plain() []rule { return append(plainStatements(), plainExpressions()...) }

func plainStatements() []rule {
	return []rule{
		runs[*ast.FuncDecl](
			no("methods", method),
			no("generic functions", generic),
			no("named results", namedResults),                    // kept the results of the last call
			no("blanks of several types", blanksOfSeveralTypes)), // treats _ as one variable
		runs[*ast.GenDecl](no("declared types", declaresType)),
		runs[*ast.ImportSpec](no("renamed imports", renamed)),
		runs[*ast.ValueSpec](
			no("package variables", changingPackageVar), // their contents would survive into the next run
			no("several values assigned at once", severalValues),
			no("results of operators assigned to interfaces", declaresBoxed)), // the results were lost
		runs[*ast.FuncType](),
		runs[*ast.FieldList](),
		runs[*ast.Field](),
		runs[*ast.Comment](),
		runs[*ast.CommentGroup](),

		runs[*ast.BlockStmt](no("empty blocks", emptyBlock)), // left out what follows
		runs[*ast.IfStmt](no("constant conditions", constantIf)),
		runs[*ast.SwitchStmt](
			no("switches with a statement before them", switchInit),
			no("switches on other than plain values", switchOnOther), // took 0.5 for case 0
			no("a default that is not last", earlyDefault),           // did not evaluate the conditions after it
			no("a case with several conditions", severalConditions),  // checked only the first condition
			no("constant conditions", constantCase)),
		runs[*ast.ReturnStmt](
			no("built-in calls as other than the first result", lateBuiltin), // assigned them to the first result
			no("results of operators returned as interfaces", returnsBoxed)), // crashed on comparisons, lost signs
		runs[*ast.IncDecStmt](
			no("arithmetic on sized numbers", countsSized),
			no("assignments to fields and through pointers", countsElsewhere)),
		runs[*ast.AssignStmt](
			no("arithmetic on sized numbers", assignsSized),
			no("several values assigned at once", assignsSeveral),
			no("comma-ok forms that assign", assignsCommaOK), // if not ok, kept the old value
			no("values given away", givesAway),
			no("results of operators assigned to interfaces", assignsBoxed), // the results were lost
			no("package variables that change", assignsPackageVar),
			no("assignments to fields and through pointers", assignsElsewhere),
			no("changes of what may be the call's input", changesInput)),
		runs[*ast.CaseClause](),
		runs[*ast.DeclStmt](),
		runs[*ast.ExprStmt](),
		runs[*ast.EmptyStmt](),
	}
}

func plainExpressions() []rule {
	return []rule{
		runs[*ast.Ident](
			no("generics", instance),
			no("built-ins but len, append, make and delete", otherBuiltin),
			no("iota", counter)),
		runs[*ast.BasicLit](no("complex numbers", imaginary)),
		runs[*ast.CompositeLit](
			no("literals of other than slices and maps", otherLiteral),
			no("results of operators as elements of interface type", holdsBoxed)),
		runs[*ast.ParenExpr](no("parentheses around other than an operator", idleParentheses)),
		runs[*ast.StarExpr](no("pointers", dereference)),
		runs[*ast.SliceExpr](no("slices with a capacity", sliceOfThree)),
		runs[*ast.TypeAssertExpr](
			no("type switches", typeSwitch),
			no("assertions that may panic", mayPanic)),
		runs[*ast.BinaryExpr](
			no("constant expressions", constantOperator),
			no("comparisons of other than plain values", comparesOther),
			no("constant conditions", constantOperand),
			no("arithmetic on sized numbers", computesSized),
			no("operators on bits", bitwise)),
		runs[*ast.UnaryExpr](
			no("a negated parenthesis", negatedParenthesis), // left out what follows
			no("constant conditions", negatedConstant),
			no("operators but - + and !", otherUnary)),
		runs[*ast.SelectorExpr](
			no("questions to the daemon", asksDaemon),
			no("method expressions", methodExpression)),
		runs[*ast.CallExpr](
			no("a conversion", converts),
			no("calls of function values", callsValue),
			no("calls whose turn in a statement matters", outOfTurn),
			no("decoding into variables", decodes),
			no("changes of what may be the call's input", deletesInput),
			no("a slice appended as an element", appendsSlice),          // yaegi spreads the slice
			no("a slice as one of several arguments", passesSliceAsOne), // yaegi spreads the slice
			no("results of operators as arguments of interface type", passesBoxed),
			no("functions as arguments", passesFunction)),
		runs[*ast.KeyValueExpr](),
		runs[*ast.IndexExpr](),
		runs[*ast.Ellipsis](),
		runs[*ast.ArrayType](),
		runs[*ast.MapType](),
		runs[*ast.InterfaceType](),
	}
}
