#include "textflag.h"

// A stub has no frame: it loads the function value of its slot into DX, where the function expects its own closure, and jumps to its code.
// Receiver, arguments and return address stay where the caller put them, so one stub serves every signature.
#define STUB(n) \
	MOVQ ·slots+((n)*8)(SB), DX; \
	MOVQ (DX), R12; \
	JMP R12; \
	PCALIGN $16

#define STUBS8(n) STUB(n); STUB(n+1); STUB(n+2); STUB(n+3); STUB(n+4); STUB(n+5); STUB(n+6); STUB(n+7)
#define STUBS64(n) STUBS8(n); STUBS8(n+8); STUBS8(n+16); STUBS8(n+24); STUBS8(n+32); STUBS8(n+40); STUBS8(n+48); STUBS8(n+56)
#define STUBS512(n) STUBS64(n); STUBS64(n+64); STUBS64(n+128); STUBS64(n+192); STUBS64(n+256); STUBS64(n+320); STUBS64(n+384); STUBS64(n+448)
#define STUBS4096(n) STUBS512(n); STUBS512(n+512); STUBS512(n+1024); STUBS512(n+1536); STUBS512(n+2048); STUBS512(n+2560); STUBS512(n+3072); STUBS512(n+3584)

// func stubs()
TEXT ·stubs(SB), NOSPLIT|NOFRAME, $0-0
	STUBS4096(0)
	STUBS4096(4096)

// func firstStub() uintptr
TEXT ·firstStub(SB), NOSPLIT, $0-8
	LEAQ ·stubs(SB), AX
	MOVQ AX, ret+0(FP)
	RET
