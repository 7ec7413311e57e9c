// What the runtime needs of a standard library, as far as that is slow to compile: lists of plain data, locks, threads,
// the clock. <vector>, <mutex> and <thread> would take more of a compiler's time than the runtime does.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <new>

namespace pto {

// --- lists ----------------------------------------------------------------------------------------------------------

// Makes room for twice as many elements, or for `least`. Not a template, and so compiled once.
[[gnu::noinline, gnu::cold]] inline void* widened(void* data, size_t& capacity, size_t least, size_t element) {
    const size_t wanted = 2 * capacity > least ? 2 * capacity : least > 8 ? least : 8;
    void* made = realloc(data, wanted * element);
    if (made == nullptr) throw std::bad_alloc();
    capacity = wanted;
    return made;
}

// Elements that may be copied as bytes, and need no end.
template <typename T>
class List {
   public:
    List() = default;
    List(const List&) = delete;
    List& operator=(const List&) = delete;
    ~List() {
        static_assert(__is_trivially_copyable(T), "elements are moved as bytes");
        free(data_);
    }

    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T* data() { return data_; }
    const T* data() const { return data_; }
    T* begin() { return data_; }
    T* end() { return data_ + size_; }
    const T* begin() const { return data_; }
    const T* end() const { return data_ + size_; }
    T& operator[](size_t at) { return data_[at]; }
    const T& operator[](size_t at) const { return data_[at]; }
    T& back() { return data_[size_ - 1]; }

    // `value` is not in the list.
    void push_back(const T& value) {
        if (size_ == capacity_) reserve(size_ + 1);
        new (static_cast<void*>(data_ + size_++)) T(value);
    }
    void pop_back() { --size_; }
    void clear() { size_ = 0; }
    // New elements are all zeros.
    void resize(size_t size) {
        reserve(size);
        if (size > size_) memset(static_cast<void*>(data_ + size_), 0, (size - size_) * sizeof(T));
        size_ = size;
    }
    void append(const List& more) {
        if (more.empty()) return;
        reserve(size_ + more.size_);
        memcpy(static_cast<void*>(data_ + size_), static_cast<const void*>(more.data_), more.size_ * sizeof(T));
        size_ += more.size_;
    }
    void swap(List& other) {
        T* const data = data_;
        const size_t size = size_, capacity = capacity_;
        data_ = other.data_, size_ = other.size_, capacity_ = other.capacity_;
        other.data_ = data, other.size_ = size, other.capacity_ = capacity;
    }

   private:
    void reserve(size_t least) {
        if (least > capacity_) data_ = static_cast<T*>(widened(data_, capacity_, least, sizeof(T)));
    }

    T* data_ = nullptr;
    size_t size_ = 0;
    size_t capacity_ = 0;
};

// --- threads --------------------------------------------------------------------------------------------------------

class Mutex {
   public:
    Mutex() = default;
    Mutex(const Mutex&) = delete;
    Mutex& operator=(const Mutex&) = delete;
    ~Mutex() { pthread_mutex_destroy(&mutex_); }
    void lock() { pthread_mutex_lock(&mutex_); }
    void unlock() { pthread_mutex_unlock(&mutex_); }

   private:
    friend class Signal;
    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

// Holds the lock as long as it exists.
class Hold {
   public:
    explicit Hold(Mutex& mutex) : mutex_(mutex) { mutex_.lock(); }
    ~Hold() { mutex_.unlock(); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Mutex& mutex_;
};

// Wakes threads that wait. As with every condition variable, a thread may wake without reason.
class Signal {
   public:
    Signal() = default;
    Signal(const Signal&) = delete;
    Signal& operator=(const Signal&) = delete;
    ~Signal() { pthread_cond_destroy(&condition_); }
    void wait(Mutex& held) { pthread_cond_wait(&condition_, &held.mutex_); }
    void wake_one() { pthread_cond_signal(&condition_); }
    void wake_all() { pthread_cond_broadcast(&condition_); }

   private:
    pthread_cond_t condition_ = PTHREAD_COND_INITIALIZER;
};

// --- time -----------------------------------------------------------------------------------------------------------

inline uint64_t now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

inline void yield() { sched_yield(); }

inline void sleep_for_us(long microseconds) {
    const timespec wanted{0, 1000 * microseconds};
    nanosleep(&wanted, nullptr);
}

template <typename T>
constexpr T least(T a, T b) {
    return b < a ? b : a;
}
template <typename T>
constexpr T most(T a, T b) {
    return a < b ? b : a;
}

}  // namespace pto
