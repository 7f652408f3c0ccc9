// VM interpreter kernels. One exported function per kernel, each takes the trip
// count as its only argument. See ../../README.md for operation counts and results.
vm.module @vmk {
  vm.global.i32 private mutable @gi : i32
  vm.global.i64 private mutable @gl : i64
  vm.import private @hal_inline.buffer.allocate(%min_align : i32, %size : i64) -> (!vm.ref<!hal.buffer>, !vm.buffer)
  vm.import private @hal_inline.buffer.length(%buffer : !vm.ref<!hal.buffer>) -> i64
  vm.import private @hal_inline.buffer_view.create(%b : !vm.ref<!hal.buffer>, %o : i64, %l : i64, %et : i32, %enc : i32, %shape : i64 ...) -> !vm.ref<!hal.buffer_view>
  vm.import private @hal_inline.buffer_view.rank(%view : !vm.ref<!hal.buffer_view>) -> i32

  vm.export @nop
  vm.func @nop(%n : i32) -> i32 {
    vm.return %n : i32
  }

  // s = (s + i) ^ 1 over i in [0, n).
  vm.export @loop_i32
  vm.func @loop_i32(%n : i32) -> i32 {
    %c0 = vm.const.i32 0
    %c1 = vm.const.i32 1
    vm.br ^h(%c0, %c0 : i32, i32)
  ^h(%i : i32, %s : i32):
    %lt = vm.cmp.lt.i32.s %i, %n : i32
    vm.cond_br %lt, ^b, ^e
  ^b:
    %s2 = vm.add.i32 %s, %i : i32
    %s3 = vm.xor.i32 %s2, %c1 : i32
    %i2 = vm.add.i32 %i, %c1 : i32
    vm.br ^h(%i2, %s3 : i32, i32)
  ^e:
    vm.return %s : i32
  }

  // 64-bit linear congruential generator folded into a sum.
  vm.export @loop_i64
  vm.func @loop_i64(%n : i32) -> i64 {
    %z = vm.const.i64 0
    %one = vm.const.i64 1
    %a = vm.const.i64 6364136223846793005
    %c = vm.const.i64 1442695040888963407
    %k = vm.const.i32 33
    %nn = vm.ext.i32.i64.s %n : i32 -> i64
    vm.br ^h(%z, %one, %z : i64, i64, i64)
  ^h(%i : i64, %x : i64, %s : i64):
    %lt = vm.cmp.lt.i64.s %i, %nn : i64
    vm.cond_br %lt, ^b, ^e
  ^b:
    %m = vm.mul.i64 %x, %a : i64
    %x2 = vm.add.i64 %m, %c : i64
    %t = vm.shr.i64.u %x2, %k : i64
    %s2 = vm.xor.i64 %s, %t : i64
    %i2 = vm.add.i64 %i, %one : i64
    vm.br ^h(%i2, %x2, %s2 : i64, i64, i64)
  ^e:
    vm.return %s : i64
  }

  // x = x*a + b ; y = y + x*x ; f32.
  vm.export @arith_f32
  vm.func @arith_f32(%n : i32) -> f32 {
    %c0 = vm.const.i32 0
    %c1 = vm.const.i32 1
    %a = vm.const.f32 0.99951171875
    %b = vm.const.f32 0.25
    %z = vm.const.f32 0.0
    vm.br ^h(%c0, %b, %z : i32, f32, f32)
  ^h(%i : i32, %x : f32, %y : f32):
    %lt = vm.cmp.lt.i32.s %i, %n : i32
    vm.cond_br %lt, ^bb, ^e
  ^bb:
    %p = vm.mul.f32 %x, %a : f32
    %x2 = vm.add.f32 %p, %b : f32
    %q = vm.mul.f32 %x2, %x2 : f32
    %y2 = vm.add.f32 %y, %q : f32
    %i2 = vm.add.i32 %i, %c1 : i32
    vm.br ^h(%i2, %x2, %y2 : i32, f32, f32)
  ^e:
    vm.return %y : f32
  }

  // As arith_f32, in f64.
  vm.export @arith_f64
  vm.func @arith_f64(%n : i32) -> f64 {
    %c0 = vm.const.i32 0
    %c1 = vm.const.i32 1
    %a = vm.const.f64 0.99951171875
    %b = vm.const.f64 0.25
    %z = vm.const.f64 0.0
    vm.br ^h(%c0, %b, %z : i32, f64, f64)
  ^h(%i : i32, %x : f64, %y : f64):
    %lt = vm.cmp.lt.i32.s %i, %n : i32
    vm.cond_br %lt, ^bb, ^e
  ^bb:
    %p = vm.mul.f64 %x, %a : f64
    %x2 = vm.add.f64 %p, %b : f64
    %q = vm.mul.f64 %x2, %x2 : f64
    %y2 = vm.add.f64 %y, %q : f64
    %i2 = vm.add.i32 %i, %c1 : i32
    vm.br ^h(%i2, %x2, %y2 : i32, f64, f64)
  ^e:
    vm.return %y : f64
  }

  // Three-deep call chain per iteration: loop -> c1 -> c2 -> c3.
  vm.func private @c3(%x : i32, %y : i32) -> i32 attributes {inlining_policy = #util.inline.never} {
    %s = vm.add.i32 %x, %y : i32
    vm.return %s : i32
  }
  vm.func private @c2(%x : i32, %y : i32) -> i32 attributes {inlining_policy = #util.inline.never} {
    %t = vm.xor.i32 %x, %y : i32
    %s = vm.call @c3(%t, %y) : (i32, i32) -> i32
    vm.return %s : i32
  }
  vm.func private @c1(%x : i32, %y : i32) -> i32 attributes {inlining_policy = #util.inline.never} {
    %s = vm.call @c2(%y, %x) : (i32, i32) -> i32
    %t = vm.add.i32 %s, %x : i32
    vm.return %t : i32
  }
  vm.export @calls
  vm.func @calls(%n : i32) -> i32 {
    %c0 = vm.const.i32 0
    %c1 = vm.const.i32 1
    vm.br ^h(%c0, %c0 : i32, i32)
  ^h(%i : i32, %s : i32):
    %lt = vm.cmp.lt.i32.s %i, %n : i32
    vm.cond_br %lt, ^b, ^e
  ^b:
    %s2 = vm.call @c1(%s, %i) : (i32, i32) -> i32
    %i2 = vm.add.i32 %i, %c1 : i32
    vm.br ^h(%i2, %s2 : i32, i32)
  ^e:
    vm.return %s : i32
  }

  // One i32 and one i64 global read-modify-write per iteration.
  vm.export @globals
  vm.func @globals(%n : i32) -> i64 {
    %c0 = vm.const.i32 0
    %c1 = vm.const.i32 1
    vm.global.store.i32 %c0, @gi : i32
    %z = vm.const.i64 0
    vm.global.store.i64 %z, @gl : i64
    vm.br ^h(%c0 : i32)
  ^h(%i : i32):
    %lt = vm.cmp.lt.i32.s %i, %n : i32
    vm.cond_br %lt, ^b, ^e
  ^b:
    %g = vm.global.load.i32 @gi : i32
    %g2 = vm.add.i32 %g, %i : i32
    vm.global.store.i32 %g2, @gi : i32
    %l = vm.global.load.i64 @gl : i64
    %x = vm.ext.i32.i64.s %g2 : i32 -> i64
    %l2 = vm.xor.i64 %l, %x : i64
    vm.global.store.i64 %l2, @gl : i64
    %i2 = vm.add.i32 %i, %c1 : i32
    vm.br ^h(%i2 : i32)
  ^e:
    %r = vm.global.load.i64 @gl : i64
    vm.return %r : i64
  }

  // Fill a 16384-element i32 buffer once, then sum it by index (i mod 16384).
  vm.export @buf_sum
  vm.func @buf_sum(%n : i32) -> i32 {
    %c0 = vm.const.i32 0
    %align = vm.const.i32 16
    %c3 = vm.const.i32 3
    %z = vm.const.i64 0
    %one = vm.const.i64 1
    %cnt = vm.const.i64 16384
    %mask = vm.const.i64 16383
    %bytes = vm.const.i64 65536
    %nn = vm.ext.i32.i64.s %n : i32 -> i64
    %buf = vm.buffer.alloc %bytes, %align : !vm.buffer
    vm.buffer.fill.i32 %buf, %z, %cnt, %c3 : i32 -> !vm.buffer
    vm.br ^h(%z, %c0 : i64, i32)
  ^h(%i : i64, %s : i32):
    %lt = vm.cmp.lt.i64.s %i, %nn : i64
    vm.cond_br %lt, ^b, ^e
  ^b:
    %k = vm.and.i64 %i, %mask : i64
    %v = vm.buffer.load.i32 %buf[%k] : !vm.buffer -> i32
    %s2 = vm.add.i32 %s, %v : i32
    %i2 = vm.add.i64 %i, %one : i64
    vm.br ^h(%i2, %s2 : i64, i32)
  ^e:
    vm.return %s : i32
  }

  // saxpy-like: y[k] = y[k] + a * x[k] over f32 buffers of 4096 elements.
  vm.export @buf_axpy
  vm.func @buf_axpy(%n : i32) -> f32 {
    %c0 = vm.const.i32 0
    %align = vm.const.i32 16
    %z = vm.const.i64 0
    %one = vm.const.i64 1
    %mask = vm.const.i64 4095
    %cnt = vm.const.i64 4096
    %bytes = vm.const.i64 16384
    %a = vm.const.f32 0.5
    %v0 = vm.const.f32 1.25
    %nn = vm.ext.i32.i64.s %n : i32 -> i64
    %x = vm.buffer.alloc %bytes, %align : !vm.buffer
    %y = vm.buffer.alloc %bytes, %align : !vm.buffer
    vm.buffer.fill.f32 %x, %z, %cnt, %v0 : f32 -> !vm.buffer
    vm.buffer.fill.f32 %y, %z, %cnt, %v0 : f32 -> !vm.buffer
    vm.br ^h(%z : i64)
  ^h(%i : i64):
    %lt = vm.cmp.lt.i64.s %i, %nn : i64
    vm.cond_br %lt, ^b, ^e
  ^b:
    %k = vm.and.i64 %i, %mask : i64
    %xv = vm.buffer.load.f32 %x[%k] : !vm.buffer -> f32
    %yv = vm.buffer.load.f32 %y[%k] : !vm.buffer -> f32
    %p = vm.mul.f32 %xv, %a : f32
    %s = vm.add.f32 %yv, %p : f32
    vm.buffer.store.f32 %s, %y[%k] : f32 -> !vm.buffer
    %i2 = vm.add.i64 %i, %one : i64
    vm.br ^h(%i2 : i64)
  ^e:
    %r = vm.buffer.load.f32 %y[%z] : !vm.buffer -> f32
    vm.return %r : f32
  }

  // Byte-wise store loop over a buffer of n bytes.
  vm.export @memset_bytes
  vm.func @memset_bytes(%n : i32) -> i32 {
    %align = vm.const.i32 16
    %z = vm.const.i64 0
    %one = vm.const.i64 1
    %v = vm.const.i32 7
    %nn = vm.ext.i32.i64.s %n : i32 -> i64
    %buf = vm.buffer.alloc %nn, %align : !vm.buffer
    vm.br ^h(%z : i64)
  ^h(%i : i64):
    %lt = vm.cmp.lt.i64.s %i, %nn : i64
    vm.cond_br %lt, ^b, ^e
  ^b:
    vm.buffer.store.i8 %v, %buf[%i] : i32 -> !vm.buffer
    %i2 = vm.add.i64 %i, %one : i64
    vm.br ^h(%i2 : i64)
  ^e:
    %last = vm.sub.i64 %nn, %one : i64
    %r = vm.buffer.load.i8.u %buf[%last] : !vm.buffer -> i32
    vm.return %r : i32
  }

  // Bulk buffer ops: fill 64 KiB + copy 64 KiB + compare 64 KiB, n times.
  vm.export @buf_bulk
  vm.func @buf_bulk(%n : i32) -> i32 {
    %c0 = vm.const.i32 0
    %c1 = vm.const.i32 1
    %align = vm.const.i32 16
    %z = vm.const.i64 0
    %cnt = vm.const.i64 16384
    %bytes = vm.const.i64 65536
    %x = vm.buffer.alloc %bytes, %align : !vm.buffer
    %y = vm.buffer.alloc %bytes, %align : !vm.buffer
    vm.br ^h(%c0, %c0 : i32, i32)
  ^h(%i : i32, %s : i32):
    %lt = vm.cmp.lt.i32.s %i, %n : i32
    vm.cond_br %lt, ^b, ^e
  ^b:
    vm.buffer.fill.i32 %x, %z, %cnt, %i : i32 -> !vm.buffer
    vm.buffer.copy %x, %z, %y, %z, %bytes : !vm.buffer -> !vm.buffer
    %eq = vm.buffer.compare %x, %z, %y, %z, %bytes : !vm.buffer, !vm.buffer
    %s2 = vm.add.i32 %s, %eq : i32
    %i2 = vm.add.i32 %i, %c1 : i32
    vm.br ^h(%i2, %s2 : i32, i32)
  ^e:
    vm.return %s : i32
  }

  // Sieve of Eratosthenes on bytes; returns the number of primes below n.
  vm.export @sieve
  vm.func @sieve(%n : i32) -> i32 {
    %c0 = vm.const.i32 0
    %c1 = vm.const.i32 1
    %align = vm.const.i32 16
    %z = vm.const.i64 0
    %one = vm.const.i64 1
    %two = vm.const.i64 2
    %nn = vm.ext.i32.i64.s %n : i32 -> i64
    %buf = vm.buffer.alloc %nn, %align : !vm.buffer
    vm.buffer.fill.i8 %buf, %z, %nn, %c1 : i32 -> !vm.buffer
    vm.br ^oh(%two, %c0 : i64, i32)
  ^oh(%p : i64, %count : i32):
    %lt = vm.cmp.lt.i64.s %p, %nn : i64
    vm.cond_br %lt, ^ob, ^e
  ^ob:
    %v = vm.buffer.load.i8.u %buf[%p] : !vm.buffer -> i32
    %nz = vm.cmp.nz.i32 %v : i32
    vm.cond_br %nz, ^prime, ^onext(%count : i32)
  ^prime:
    %count2 = vm.add.i32 %count, %c1 : i32
    %q0 = vm.mul.i64 %p, %p : i64
    vm.br ^ih(%q0 : i64)
  ^ih(%q : i64):
    %lt2 = vm.cmp.lt.i64.s %q, %nn : i64
    vm.cond_br %lt2, ^ib, ^onext(%count2 : i32)
  ^ib:
    vm.buffer.store.i8 %c0, %buf[%q] : i32 -> !vm.buffer
    %q2 = vm.add.i64 %q, %p : i64
    vm.br ^ih(%q2 : i64)
  ^onext(%cn : i32):
    %p2 = vm.add.i64 %p, %one : i64
    vm.br ^oh(%p2, %cn : i64, i32)
  ^e:
    vm.return %count : i32
  }

  // list<i32> get/set over 1024 elements, index wraps.
  vm.export @list_i32
  vm.func @list_i32(%n : i32) -> i32 {
    %c0 = vm.const.i32 0
    %c1 = vm.const.i32 1
    %mask = vm.const.i32 1023
    %size = vm.const.i32 1024
    %list = vm.list.alloc %size : (i32) -> !vm.list<i32>
    vm.list.resize %list, %size : (!vm.list<i32>, i32)
    vm.br ^h(%c0 : i32)
  ^h(%i : i32):
    %lt = vm.cmp.lt.i32.s %i, %n : i32
    vm.cond_br %lt, ^b, ^e
  ^b:
    %k = vm.and.i32 %i, %mask : i32
    %v = vm.list.get.i32 %list, %k : (!vm.list<i32>, i32) -> i32
    %v2 = vm.add.i32 %v, %i : i32
    vm.list.set.i32 %list, %k, %v2 : (!vm.list<i32>, i32, i32)
    %i2 = vm.add.i32 %i, %c1 : i32
    vm.br ^h(%i2 : i32)
  ^e:
    %r = vm.list.get.i32 %list, %c1 : (!vm.list<i32>, i32) -> i32
    vm.return %r : i32
  }

  // list<ref> get/set: moves buffer references around (reference counting).
  vm.export @list_ref
  vm.func @list_ref(%n : i32) -> i32 {
    %c0 = vm.const.i32 0
    %c1 = vm.const.i32 1
    %mask = vm.const.i32 63
    %size = vm.const.i32 64
    %align = vm.const.i32 16
    %eight = vm.const.i64 8
    %list = vm.list.alloc %size : (i32) -> !vm.list<?>
    vm.list.resize %list, %size : (!vm.list<?>, i32)
    %b0 = vm.buffer.alloc %eight, %align : !vm.buffer
    vm.list.set.ref %list, %c0, %b0 : (!vm.list<?>, i32, !vm.buffer)
    vm.br ^h(%c0 : i32)
  ^h(%i : i32):
    %lt = vm.cmp.lt.i32.s %i, %n : i32
    vm.cond_br %lt, ^b, ^e
  ^b:
    %i2 = vm.add.i32 %i, %c1 : i32
    %k = vm.and.i32 %i, %mask : i32
    %k2 = vm.and.i32 %i2, %mask : i32
    %v = vm.list.get.ref %list, %k : (!vm.list<?>, i32) -> !vm.buffer
    vm.list.set.ref %list, %k2, %v : (!vm.list<?>, i32, !vm.buffer)
    vm.br ^h(%i2 : i32)
  ^e:
    %r = vm.list.size %list : (!vm.list<?>) -> i32
    vm.return %r : i32
  }

  // Total number of Collatz steps for all starts below n (branch-heavy, i64).
  vm.export @collatz
  vm.func @collatz(%n : i32) -> i32 {
    %c0 = vm.const.i32 0
    %c1 = vm.const.i32 1
    %one = vm.const.i64 1
    %three = vm.const.i64 3
    %nn = vm.ext.i32.i64.s %n : i32 -> i64
    vm.br ^oh(%one, %c0 : i64, i32)
  ^oh(%s : i64, %steps : i32):
    %lt = vm.cmp.lt.i64.s %s, %nn : i64
    vm.cond_br %lt, ^ih(%s, %steps : i64, i32), ^e
  ^ih(%x : i64, %st : i32):
    %done = vm.cmp.eq.i64 %x, %one : i64
    vm.cond_br %done, ^onext, ^step
  ^step:
    %st2 = vm.add.i32 %st, %c1 : i32
    %bit = vm.and.i64 %x, %one : i64
    %odd = vm.cmp.nz.i64 %bit : i64
    vm.cond_br %odd, ^up, ^down
  ^up:
    %m = vm.mul.i64 %x, %three : i64
    %u = vm.add.i64 %m, %one : i64
    vm.br ^ih(%u, %st2 : i64, i32)
  ^down:
    %d = vm.shr.i64.u %x, %c1 : i64
    vm.br ^ih(%d, %st2 : i64, i32)
  ^onext:
    %s2 = vm.add.i64 %s, %one : i64
    vm.br ^oh(%s2, %st : i64, i32)
  ^e:
    vm.return %steps : i32
  }

  // Eight-way br_table state machine driven by a xorshift generator.
  vm.export @br_table
  vm.func @br_table(%n : i32) -> i32 {
    %c0 = vm.const.i32 0
    %c1 = vm.const.i32 1
    %c3 = vm.const.i32 3
    %c5 = vm.const.i32 5
    %c7 = vm.const.i32 7
    %c13 = vm.const.i32 13
    %c17 = vm.const.i32 17
    %seed = vm.const.i32 20260101
    vm.br ^h(%c0, %seed, %c0 : i32, i32, i32)
  ^h(%i : i32, %x : i32, %s : i32):
    %lt = vm.cmp.lt.i32.s %i, %n : i32
    vm.cond_br %lt, ^b, ^e
  ^b:
    %i2 = vm.add.i32 %i, %c1 : i32
    %x1 = vm.shl.i32 %x, %c13 : i32
    %x2 = vm.xor.i32 %x, %x1 : i32
    %x3 = vm.shr.i32.u %x2, %c17 : i32
    %x4 = vm.xor.i32 %x2, %x3 : i32
    %x5 = vm.shl.i32 %x4, %c5 : i32
    %x6 = vm.xor.i32 %x4, %x5 : i32
    %k = vm.and.i32 %x6, %c7 : i32
    vm.br_table %k {
      default: ^s7,
      0: ^s0,
      1: ^s1,
      2: ^s2,
      3: ^s3,
      4: ^s4,
      5: ^s5,
      6: ^s6
    }
  ^s0:
    %r0 = vm.add.i32 %s, %c1 : i32
    vm.br ^h(%i2, %x6, %r0 : i32, i32, i32)
  ^s1:
    %r1 = vm.xor.i32 %s, %x6 : i32
    vm.br ^h(%i2, %x6, %r1 : i32, i32, i32)
  ^s2:
    %r2 = vm.sub.i32 %s, %c3 : i32
    vm.br ^h(%i2, %x6, %r2 : i32, i32, i32)
  ^s3:
    %r3 = vm.mul.i32 %s, %c5 : i32
    vm.br ^h(%i2, %x6, %r3 : i32, i32, i32)
  ^s4:
    %r4 = vm.or.i32 %s, %c1 : i32
    vm.br ^h(%i2, %x6, %r4 : i32, i32, i32)
  ^s5:
    %r5 = vm.add.i32 %s, %x6 : i32
    vm.br ^h(%i2, %x6, %r5 : i32, i32, i32)
  ^s6:
    %r6 = vm.shr.i32.u %s, %c1 : i32
    vm.br ^h(%i2, %x6, %r6 : i32, i32, i32)
  ^s7:
    %r7 = vm.not.i32 %s : i32
    vm.br ^h(%i2, %x6, %r7 : i32, i32, i32)
  ^e:
    vm.return %s : i32
  }

  // One non-variadic import call per iteration (one ref argument, i64 result).
  vm.export @import_calls
  vm.func @import_calls(%n : i32) -> i64 {
    %c0 = vm.const.i32 0
    %c1 = vm.const.i32 1
    %align = vm.const.i32 16
    %size = vm.const.i64 64
    %z = vm.const.i64 0
    %hb, %st = vm.call @hal_inline.buffer.allocate(%align, %size) : (i32, i64) -> (!vm.ref<!hal.buffer>, !vm.buffer)
    vm.br ^h(%c0, %z : i32, i64)
  ^h(%i : i32, %s : i64):
    %lt = vm.cmp.lt.i32.s %i, %n : i32
    vm.cond_br %lt, ^b, ^e
  ^b:
    %l = vm.call @hal_inline.buffer.length(%hb) : (!vm.ref<!hal.buffer>) -> i64
    %s2 = vm.add.i64 %s, %l : i64
    %i2 = vm.add.i32 %i, %c1 : i32
    vm.br ^h(%i2, %s2 : i32, i64)
  ^e:
    vm.return %s : i64
  }

  // One variadic import call per iteration (buffer view creation, rank 2).
  vm.export @import_variadic
  vm.func @import_variadic(%n : i32) -> i32 {
    %c0 = vm.const.i32 0
    %c1 = vm.const.i32 1
    %align = vm.const.i32 16
    %size = vm.const.i64 64
    %z = vm.const.i64 0
    %four = vm.const.i64 4
    %f32t = vm.const.i32 553648160
    %hb, %st = vm.call @hal_inline.buffer.allocate(%align, %size) : (i32, i64) -> (!vm.ref<!hal.buffer>, !vm.buffer)
    vm.br ^h(%c0, %c0 : i32, i32)
  ^h(%i : i32, %s : i32):
    %lt = vm.cmp.lt.i32.s %i, %n : i32
    vm.cond_br %lt, ^b, ^e
  ^b:
    %v = vm.call.variadic @hal_inline.buffer_view.create(%hb, %z, %size, %f32t, %c1, [%four, %four]) : (!vm.ref<!hal.buffer>, i64, i64, i32, i32, i64 ...) -> !vm.ref<!hal.buffer_view>
    %r = vm.call @hal_inline.buffer_view.rank(%v) : (!vm.ref<!hal.buffer_view>) -> i32
    %s2 = vm.add.i32 %s, %r : i32
    %i2 = vm.add.i32 %i, %c1 : i32
    vm.br ^h(%i2, %s2 : i32, i32)
  ^e:
    vm.return %s : i32
  }
}
